import { describe, expect, test } from "@jest/globals";
import { createLogger, Metrics, type LogFields } from "./index.ts";

function captured() {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ service: "orchestrator", destination: { write: (text: string) => void lines.push(JSON.parse(text) as Record<string, unknown>) } });
  return { lines, log };
}

describe("the logger", () => {
  test("writes one JSON line with service, level, time, message and allowed fields", () => {
    const { lines, log } = captured();
    log.child({ requestId: "r1" }).info({ operation: "GetRun", durationMs: 3 }, "finished");
    expect(lines).toEqual([
      { service: "orchestrator", level: "info", time: expect.stringMatching(/^\d{4}-.*Z$/), message: "finished", requestId: "r1", operation: "GetRun", durationMs: 3 },
    ]);
  });

  test("drops fields that are not on the list, whatever their type says", () => {
    const { lines, log } = captured();
    log.info({ operation: "x", prompt: "secret words", authorization: "Bearer k" } as LogFields, "finished");
    log.child({ prompt: "secret words" } as LogFields).info("again");
    expect(JSON.stringify(lines)).not.toMatch(/secret words|Bearer/);
  });

  test("tells an error with its causes, and nothing else of it", () => {
    const { lines, log } = captured();
    const cause = Object.assign(new Error("inner"), { code: "ECONNREFUSED", config: { token: "hunter2" } });
    log.error({ error: Object.assign(new Error("outer", { cause }), { reason: "run_broken" }) }, "failed");
    expect(lines[0]).toMatchObject({ error: { message: "outer", reason: "run_broken", cause: { message: "inner", code: "ECONNREFUSED" } } });
    expect(JSON.stringify(lines)).not.toContain("hunter2");
  });

  test("keeps quiet below its level", () => {
    const { lines, log } = captured();
    log.debug({ operation: "x" }, "detail");
    log.debug("detail");
    expect(lines).toEqual([]);
  });
});

test("metrics are told in Prometheus' text form, and asking twice gives the same metric", async () => {
  const metrics = new Metrics();
  metrics.counter("millwright_rpc_total", "RPCs.", ["method"]).inc({ method: "GetRun" });
  metrics.counter("millwright_rpc_total", "RPCs.", ["method"]).inc({ method: "GetRun" }, 2);
  metrics.gauge("millwright_queue_depth", "Queued runs.").set(4);
  metrics.histogram("millwright_rpc_seconds", "Durations.", ["method"]).observe({ method: "GetRun" }, 0.2);
  const text = await metrics.text();
  expect(text).toContain('millwright_rpc_total{method="GetRun"} 3');
  expect(text).toContain("millwright_queue_depth 4");
  expect(text).toContain('millwright_rpc_seconds_bucket{le="0.25",method="GetRun"} 1');
});
