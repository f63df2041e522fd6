import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { eventually, memoryLog, TraceCollector, type CollectedSpan } from "@millwright/testing";
import {
  inSpan,
  loadTracingSettings,
  Metrics,
  NO_TRACER,
  startTracing,
  traced,
  type TraceContext,
  type Tracing,
} from "../src/index.ts";

const PARENT: TraceContext = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  isSampled: true,
};

let collector: TraceCollector;
let tracing: Tracing;
const log = memoryLog();
const metrics = new Metrics();

beforeEach(async () => void (collector = await TraceCollector.start()));
afterEach(async () => {
  await tracing.stop();
  await collector.stop();
  for (const name of Object.keys(process.env)) if (name.startsWith("OTEL_")) delete process.env[name];
});

/** The exporter's library reads the environment of its process. */
async function start(more: Record<string, string> = {}): Promise<void> {
  Object.assign(process.env, collector.environment, more);
  tracing = await startTracing(loadTracingSettings(process.env), { log, metrics });
}

async function spanNamed(name: string): Promise<CollectedSpan> {
  await eventually(() => collector.spans.some((span) => span.name === name));
  return collector.spans.find((span) => span.name === name)!;
}

describe("with a collector", () => {
  test("spans arrive with parents, links, attributes, kinds, and their service", async () => {
    await start({ OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test" });
    const options = {
      tracer: tracing.tracer("gateway"),
      kind: "server",
      parent: PARENT,
      attributes: { "http.route": "/x", n: 3, none: undefined },
      links: [PARENT],
    } as const;
    await traced("request", options, () =>
      inSpan("below", { kind: "client" }, () =>
        Promise.reject(Object.assign(new Error("private"), { reason: "busy" })),
      ),
    ).catch(() => {});
    const [request, below] = [await spanNamed("request"), await spanNamed("below")];
    expect(request).toMatchObject({
      traceId: PARENT.traceId,
      parentSpanId: PARENT.spanId,
      kind: 2,
      service: "gateway",
      isError: true,
      links: [{ traceId: PARENT.traceId, spanId: PARENT.spanId }],
    });
    expect(request.attributes).toEqual({ "http.route": "/x", n: 3, "error.type": "busy" });
    expect(below).toMatchObject({
      traceId: PARENT.traceId,
      parentSpanId: request.spanId,
      kind: 3,
      isError: true,
      attributes: { "error.type": "busy" },
    });
    const sent = collector.bodies.map(({ bytes }) => bytes.toString()).join();
    expect(sent).not.toContain("private");
    expect(sent).toContain("deployment.environment.name");
    expect(collector.bodies[0]).toMatchObject({ path: "/v1/traces" });
  });

  test("the remaining spans are sent when the process stops", async () => {
    await start({ OTEL_BSP_SCHEDULE_DELAY: "600000" });
    tracing.tracer("gateway").start("last").end();
    await tracing.stop();
    expect(collector.spans).toMatchObject([{ name: "last", parentSpanId: "" }]);
  });

  test("a caller's decision not to record is respected and passed on", async () => {
    await start();
    const unsampled = tracing.tracer("gateway").start("unwanted", { parent: { ...PARENT, isSampled: false } });
    expect(unsampled.context).toMatchObject({ traceId: PARENT.traceId, isSampled: false });
    unsampled.end();
    tracing.tracer("gateway").start("wanted", { parent: PARENT }).end();
    await spanNamed("wanted");
    expect(collector.spans.map(({ name }) => name)).toEqual(["wanted"]);
  });

  test("a sampler may drop traces", async () => {
    await start({ OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" });
    expect(tracing.tracer("gateway").start("left out").context.isSampled).toBe(false);
    expect(tracing.tracer("gateway").start("wanted", { parent: PARENT }).context.isSampled).toBe(true);
  });

  test("protobuf is the default encoding", async () => {
    await start({ OTEL_EXPORTER_OTLP_PROTOCOL: "" });
    tracing.tracer("gateway").start("in protobuf").end();
    await tracing.stop();
    expect(collector.bodies).toMatchObject([{ path: "/v1/traces", type: "application/x-protobuf" }]);
    expect(collector.bodies[0]!.bytes.includes("in protobuf")).toBe(true);
  });

  test("an error of the collector loses its spans, is logged once, and affects nothing else", async () => {
    await start();
    collector.refusal = 400;
    for (const name of ["one", "two"]) {
      const { length } = collector.bodies;
      tracing.tracer("gateway").start(name).end();
      await eventually(() => collector.bodies.length > length);
    }
    await eventually(async () => /millwright_trace_spans_lost_total 2/.test(await metrics.text()));
    expect(log.entries.map(({ message }) => message)).toEqual(["spans could not be sent"]);
  });
});

describe("without one", () => {
  test.each([
    ["no address", {}],
    ["the SDK disabled", { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_SDK_DISABLED: "true" }],
    ["another exporter", { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1", OTEL_TRACES_EXPORTER: "none" }],
  ])("nothing is recorded: %s", async (_, env) => {
    tracing = await startTracing(loadTracingSettings(env), { log });
    expect(tracing.tracer("gateway")).toBe(NO_TRACER);
  });

  test("the SDK is not loaded", async () => {
    const program = fileURLToPath(new URL("print-loaded.ts", import.meta.url));
    const loadedWith = async (env: Record<string, string>) =>
      JSON.parse(
        (
          await promisify(execFile)(process.execPath, ["--conditions=@millwright/source", "--no-warnings", program], {
            env,
          })
        ).stdout,
      ) as string[];
    expect((await loadedWith({})).filter((name) => name !== "@opentelemetry/api")).toEqual([]); // which prom-client has anyway
    expect(await loadedWith(collector.environment)).toContain("@opentelemetry/sdk-trace");
  });

  test.each([
    { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" },
    { OTEL_TRACES_SAMPLER: "sometimes" },
    { OTEL_TRACES_SAMPLER_ARG: "2" },
  ])("an invalid setting is reported at the start: %j", (env) => {
    expect(() => loadTracingSettings({ ...collector.environment, ...env })).toThrow(
      /Invalid configuration:\n {2}OTEL_/,
    );
  });
});
