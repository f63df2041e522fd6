import { expect, test } from "@jest/globals";
import { create } from "@bufbuild/protobuf";
import { systemClock } from "@millwright/clock";
import { worker } from "@millwright/contracts";
import { createLogger } from "@millwright/telemetry";
import { eventually } from "@millwright/testing";
import { DEFAULT_TIMINGS } from "../protocol/timings.ts";
import { MachineFailed, type Backend } from "./backend.ts";
import { Dispatcher } from "./dispatcher.ts";

test("consecutive failures are reported with increasing delays of up to 30 s, until a machine starts", async () => {
  const delays: number[] = [];
  const failed: bigint[] = [];
  let isBroken = true;
  const backend: Backend = {
    name: "test",
    instanceUid: async () => "i",
    known: async () => [],
    start: async () => {
      if (isBroken) throw new MachineFailed("broken", "Broken.");
    },
    faultOf: async () => undefined,
    end: async () => {},
    forget: async () => {},
  };
  const dispatcher = new Dispatcher({
    backend,
    client: {
      failDispatch: async ({ executionId = 0n }: { executionId?: bigint }) => (
        failed.push(executionId),
        create(worker.FailDispatchResponseSchema)
      ),
      complete: async () => create(worker.CompleteResponseSchema),
      returnLeases: async () => create(worker.ReturnLeasesResponseSchema),
    },
    clock: systemClock,
    timers: {
      after(ms, run) {
        delays.push(ms);
        queueMicrotask(run);
        return () => {};
      },
    },
    timings: () => DEFAULT_TIMINGS,
    log: createLogger({ service: "worker", level: "silent" }),
    slots: 1,
    startTimeoutMs: 60_000,
    signal: new AbortController().signal,
  });
  const dispatch = async (executionId: bigint): Promise<void> => {
    dispatcher.begin([create(worker.DispatchedExecutionSchema, { executionId, attempt: 1 })]);
    if (isBroken) await eventually(() => dispatcher.freeSlots() === 1);
  };
  for (let n = 1n; n <= 8n; n++) await dispatch(n);
  isBroken = false;
  await dispatch(9n);
  const [nine] = dispatcher.all();
  nine!.onStatus({ status: "TAKEN", stopping: false } as worker.WatchedStatus);
  nine!.onStatus({ status: "ENDED", stopping: false } as worker.WatchedStatus);
  await eventually(() => dispatcher.freeSlots() === 1);
  isBroken = true;
  await dispatch(10n);
  expect(failed).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 10n]);
  const longest = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 500];
  expect(delays.map((ms, n) => ms <= longest[n]! && ms >= longest[n]! / 2)).toEqual(longest.map(() => true));
});
