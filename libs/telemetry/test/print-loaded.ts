import { registerHooks } from "node:module";

/** Prints which packages of OpenTelemetry a process loads that starts tracing with its environment. */
const loaded = new Set<string>();
registerHooks({
  resolve(specifier, context, next) {
    if (specifier.startsWith("@opentelemetry/")) loaded.add(specifier);
    return next(specifier, context);
  },
});
const { createLogger, inSpan, loadTracingSettings, startTracing, traced } = await import("../src/index.ts");
const tracing = await startTracing(loadTracingSettings(process.env), {
  log: createLogger({ service: "test", level: "silent" }),
});
await traced("request", { tracer: tracing.tracer("test"), parent: undefined }, () =>
  inSpan("below", {}, async () => {}),
);
process.stdout.write(JSON.stringify([...loaded].toSorted()));
process.exit(0);
