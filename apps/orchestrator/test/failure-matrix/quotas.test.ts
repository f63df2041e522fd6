import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { EVENT_BYTES_MAX, EVENTS_PER_RUN_MAX } from "../../src/runs/domain/run-events.ts";
import { eventBatch } from "../../src/leases/rpc/worker-requests.ts";
import { startExecution } from "../support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "../support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

async function running() {
  const caller = aCaller();
  const worker = await platform.worker({ teamUid: teamOf(caller) });
  const run = await platform.run(caller);
  const execution = await startExecution(platform, worker);
  const ended = async () => ({
    ...(await platform.getRun(caller, run.uid)),
    reason: (await platform.events(run.uid)).find(({ kind }) => kind === "run_finished")?.payload["reason"],
  });
  return { run, execution, worker, ended };
}

test("Quotas: a run that writes more events than permitted is FAILED with the reason, and its worker is instructed to stop", async () => {
  const { run, execution, ended } = await running();
  await platform.database.sql.query("UPDATE run_streams SET last_seq = $2 WHERE run_uid = $1", [
    run.uid,
    EVENTS_PER_RUN_MAX - 1,
  ]);
  expect(await execution.append(execution.event("warning", { text: "the last one" }))).toMatchObject({ error: "" });
  expect((await ended()).state).toBe("INPROGRESS");
  expect(await execution.append(execution.event("warning", { text: "one too many" }))).toMatchObject({ error: "" });
  expect(await ended()).toMatchObject({
    state: "FAILED",
    reason: "event_quota",
    status: { message: `The run wrote more than ${EVENTS_PER_RUN_MAX} events.` },
  });
  const { leases, directives } = await execution.heartbeat();
  expect([leases[0]!.status, directives.map(({ kind }) => kind)]).toEqual(["STOP", ["cancel"]]);
  expect(await execution.complete("CANCELLED")).toMatchObject({ error: "" });
});

test("Quotas: a run that writes an event larger than permitted is FAILED with the reason; the event is stored without its payload", async () => {
  const { run, execution, worker, ended } = await running();
  const batch = (text: string) =>
    eventBatch({
      executionId: BigInt(execution.ref.executionId),
      attempt: execution.ref.attempt,
      events: [{ clientSeq: BigInt(++execution.clientSeq), kind: "warning", payload: { text } }],
    } as never);
  const fits = "x".repeat(EVENT_BYTES_MAX - 20);
  expect(await platform.life.worker.append(worker.session, [batch(fits)])).toMatchObject([{ error: "" }]);
  expect((await ended()).state).toBe("INPROGRESS");
  expect(await platform.life.worker.append(worker.session, [batch(`${fits}${fits}`)])).toMatchObject([
    { error: "", ackedClientSeq: execution.clientSeq },
  ]);
  expect(await ended()).toMatchObject({ state: "FAILED", reason: "event_size_quota" });
  const stored = (await platform.events(run.uid))
    .filter(({ kind }) => kind === "warning")
    .map(({ payload }) => Object.keys(payload));
  expect(stored).toEqual([["text"], ["size_bytes"]]);
});
