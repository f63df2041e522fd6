import { describe, expect, test } from "@jest/globals";
import { createLogger, Metrics, type LogFields } from "./index.ts";

function captured() {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({
    service: "orchestrator",
    destination: { write: (text: string) => void lines.push(JSON.parse(text) as Record<string, unknown>) },
  });
  return { lines, log };
}

describe("the logger", () => {
  test("writes one JSON line with service, level, time, message and allowed fields", () => {
    const { lines, log } = captured();
    log.child({ requestId: "r1" }).info({ operation: "GetRun", durationMs: 3 }, "finished");
    expect(lines).toEqual([
      {
        service: "orchestrator",
        level: "info",
        time: expect.stringMatching(/^\d{4}-.*Z$/),
        message: "finished",
        requestId: "r1",
        operation: "GetRun",
        durationMs: 3,
      },
    ]);
  });

  test("writes each key of a line once, also keys that a child or the line itself overrides", () => {
    const texts: string[] = [];
    const parent = createLogger({
      service: "standalone",
      destination: { write: (text: string) => void texts.push(text) },
    });
    parent
      .child({ service: "gateway", requestId: "r1" })
      .child({ requestId: "r2" })
      .info({ requestId: "r3" }, "finished");
    expect(texts[0]!.match(/"service"|"requestId"/g)).toHaveLength(2);
    expect(JSON.parse(texts[0]!)).toMatchObject({ service: "gateway", requestId: "r3" });
  });

  test("drops fields that are not on the list, whatever their type", () => {
    const { lines, log } = captured();
    log.info({ operation: "x", prompt: "secret words", authorization: "Bearer k" } as LogFields, "finished");
    log.child({ prompt: "secret words" } as LogFields).info("again");
    expect(JSON.stringify(lines)).not.toMatch(/secret words|Bearer/);
  });

  test("writes an error with its causes, and none of its other properties", () => {
    const { lines, log } = captured();
    const cause = Object.assign(new Error("inner"), { code: "ECONNREFUSED", config: { token: "hunter2" } });
    log.error({ error: Object.assign(new Error("outer", { cause }), { reason: "run_broken" }) }, "failed");
    expect(lines[0]).toMatchObject({
      error: { message: "outer", reason: "run_broken", cause: { message: "inner", code: "ECONNREFUSED" } },
    });
    expect(JSON.stringify(lines)).not.toContain("hunter2");
  });

  test("writes nothing below its level", () => {
    const { lines, log } = captured();
    log.debug({ operation: "x" }, "detail");
    log.debug("detail");
    expect(lines).toEqual([]);
  });
});

test("metrics have Prometheus' text format, and a repeated name returns the same metric", async () => {
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

describe("a value that is read for a scrape", () => {
  test("is current: earlier values are gone, and concurrent scrapes share the read", async () => {
    const metrics = new Metrics();
    const gauge = metrics.scrapedGauge("millwright_queue_depth", "Queued.", ["reason"]);
    let reads = 0;
    const stop = metrics.onScrape("queue", async () => {
      reads += 1;
      gauge.set({ reason: reads === 1 ? "no_workers" : "team_cap" }, 3);
    });
    const [one, other] = await Promise.all([metrics.text(), metrics.text()]);
    expect([reads, one]).toEqual([1, other]);
    expect(one).toContain('millwright_queue_depth{reason="no_workers"} 3');
    const again = await metrics.text();
    expect(again).toContain('millwright_queue_depth{reason="team_cap"} 3');
    expect(again).not.toContain("no_workers");
    stop();
    await metrics.text();
    expect(reads).toBe(2);
  });

  test("is absent, and the failure counted, when the read fails; the other values remain", async () => {
    const metrics = new Metrics();
    const [broken, fine] = [
      metrics.scrapedGauge("millwright_broken", "B.", ["service"]),
      metrics.scrapedGauge("millwright_fine", "F.", ["service"]),
    ];
    let isDown = false;
    metrics.onScrape("broken", async () => {
      if (isDown) throw new Error("the database is down");
      broken.set({ service: "x" }, 1);
    });
    metrics.onScrape("fine", () => fine.set({ service: "x" }, 2));
    expect(await metrics.text()).toContain('millwright_broken{service="x"} 1');
    isDown = true;
    const text = await metrics.text();
    expect(text).toContain('millwright_scrape_failures_total{reader="broken"} 1');
    expect(text).toContain('millwright_fine{service="x"} 2');
    expect(text).not.toContain("millwright_broken{");
  });
});
