import { Lifecycle, releaseStartupHeap, stopOnSignals } from "@millwright/lifecycle";
import { createLogger, ignoreStandardStreamErrors } from "@millwright/telemetry";
import { loadConfig } from "./config.ts";
import { buildConsole } from "./build-console.ts";
import { startStandalone } from "./standalone.ts";

ignoreStandardStreamErrors(process);
try {
  await main();
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  process.stderr.write(
    `${code === "EADDRINUSE" ? `The port is taken: ${message}. Set PORT to another one.` : message}\n`,
  );
  process.exit(1);
}

async function main(): Promise<void> {
  const config = loadConfig(process.env);
  let platform: Awaited<ReturnType<typeof startStandalone>> | undefined;
  const lifecycle = new Lifecycle().add("platform", {
    start: async () => void (platform = await startStandalone(config)),
    stop: () => platform?.stop(),
  });
  stopOnSignals(lifecycle, createLogger({ service: "standalone", level: "warn" }));
  await lifecycle.start();
  if (!platform) return; // a signal arrived before the start
  const lines = [
    "Millwright is ready.",
    `  console  ${platform.url}`,
    `  API      ${platform.url}/api/v1`,
    `  docs     ${platform.url}/docs`,
    `  data     ${config.dataDir}`,
  ];
  if (platform.signInUrl !== undefined)
    lines.splice(1, 0, `  sign in  ${platform.signInUrl}   (works once, within 30 minutes)`);
  // A key that the operator configured is not printed, because standard output is often a log.
  if (platform.isFirstStart)
    lines.push(
      config.bootstrapApiKey === undefined
        ? `  key      ${platform.apiKey}   (the owner's API key; shown this once)`
        : "  key      the one in MILLWRIGHT_BOOTSTRAP_API_KEY",
    );
  process.stdout.write(`${lines.join("\n")}\n`);
  releaseStartupHeap();
  buildConsole();
}
