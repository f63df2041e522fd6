import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { systemClock } from "@millwright/clock";
import { worker } from "@millwright/contracts";
import { Coalescer } from "../protocol/coalescer.ts";
import { timingsFrom } from "../protocol/timings.ts";
import { systemTimers } from "../time/timers.ts";
import { EventSpool } from "./event-spool.ts";
import { EventStream } from "./event-stream.ts";
import { Masker } from "./masker.ts";

const TIMINGS = timingsFrom({ heartbeatMs: 20, leaseTtlMs: 100, offerTtlMs: 100, outboundGateCloseMs: 100 });
const LEASE = { executionId: 1n, attempt: 1 };

let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), "millwright-stream-"))));
afterEach(() => rmSync(dir, { recursive: true }));

/** Returns a stream to a platform that responds to each batch as given; undefined: it accepts everything. */
function aStream(results: ((batch: worker.EventBatch) => Partial<worker.AppendResult>)[], secrets: string[] = []) {
  const batches: bigint[][] = [];
  const broken: unknown[] = [];
  const appends = new Coalescer<worker.EventBatch, worker.AppendResult>({
    timers: systemTimers,
    itemsMax: 8,
    sendAll: (items) =>
      Promise.all(
        items.map(async (batch) => {
          batches.push(batch.events.map(({ clientSeq }) => clientSeq));
          const result = results.shift()?.(batch) ?? { ackedClientSeq: batch.events.at(-1)!.clientSeq };
          return create(worker.AppendResultSchema, {
            ...LEASE,
            ackedClientSeq: result.ackedClientSeq ?? 0n,
            error: result.error ?? "",
          });
        }),
      ),
  });
  const stream = new EventStream({
    ...{ lease: LEASE, appends, clock: systemClock, timers: systemTimers, timings: () => TIMINGS },
    spool: new EventSpool(join(dir, "events")),
    masker: new Masker(secrets),
    onBroken: (error) => broken.push(error),
  });
  return { stream, batches, broken };
}

describe("the event stream", () => {
  test("joins events of one moment into one call", async () => {
    const { stream, batches } = aStream([]);
    for (let i = 0; i < 3; i++) stream.emit("message", { i });
    await stream.flushed();
    expect(batches).toEqual([[1n, 2n, 3n]]);
    await stream.flushed(); // nothing is pending
  });

  test("masks the agent's output, and stores messages of people unchanged", async () => {
    const seen: unknown[] = [];
    const { stream } = aStream(
      [
        (batch) => (
          seen.push(...batch.events.map(({ payload }) => payload)),
          { ackedClientSeq: batch.events.at(-1)!.clientSeq }
        ),
      ],
      ["test"],
    );
    stream.emit("message", { role: "user", text: "- shell: npm test" });
    stream.emit("message", { role: "assistant", text: "npm test" });
    await stream.flushed();
    expect(seen).toEqual([
      { role: "user", text: "- shell: npm test" },
      { role: "assistant", text: "npm ***" },
    ]);
  });

  test("continues at the platform's position after a gap or a partly accepted batch", async () => {
    const { stream, batches } = aStream([
      () => ({ ackedClientSeq: 1n, error: "SEQUENCE_GAP" }),
      () => ({ ackedClientSeq: 2n }),
    ]);
    for (let i = 0; i < 3; i++) stream.emit("message", { i });
    await stream.flushed();
    expect(batches).toEqual([[1n, 2n, 3n], [2n, 3n], [3n]]);
  });

  test("sends the same again after a transient failure", async () => {
    const away = () => {
      throw new ConnectError("away", Code.Unavailable);
    };
    const { stream, batches } = aStream([away, away]);
    stream.emit("message", {});
    await stream.flushed();
    expect(batches).toEqual([[1n], [1n], [1n]]);
  });

  test("waits only for what was emitted before", async () => {
    const { stream } = aStream([]);
    stream.emit("message", { i: 0 });
    const first = stream.flushed();
    stream.emit("message", { i: 1 });
    await first;
    await stream.flushed();
    expect(stream.lastSeq).toBe(2);
  });

  test("ends for good when the lease is lost", async () => {
    const { stream, broken } = aStream([() => ({ error: "LEASE_LOST" })]);
    stream.emit("message", {});
    await expect(stream.flushed()).rejects.toMatchObject({ name: "LeaseLost" });
    stream.emit("message", {});
    expect(broken).toMatchObject([{ name: "LeaseLost" }]);
    expect([stream.isBroken, stream.lastSeq]).toEqual([true, 0]);
  });
});
