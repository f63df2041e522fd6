import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startExecution, acceptExecution } from "./support/fake-worker.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

const HINT_MS = 600_000;
const PARKED = { parkedMs: 600_000 };

let platform: TestPlatform;
beforeAll(async () => {
  const { timings } = await testPlatform().then(async (ordinary) => (await ordinary.close(), ordinary));
  platform = await testPlatform({ timings: { ...timings, affinityMs: HINT_MS } });
});
afterAll(() => platform.close());

/**
 * Completes a run on the first of two workers, which retains its workspace. `followUp` sends a follow-up to the run.
 */
async function parkedRun(more: { parkedMs?: number } = PARKED, slots = 1) {
  const caller = aCaller();
  const [retaining, otherWorker] = [
    await platform.worker({ teamUid: teamOf(caller), slots }),
    await platform.worker({ teamUid: teamOf(caller) }),
  ];
  const run = await platform.run(caller);
  const execution = await startExecution(platform, retaining);
  await execution.complete("BLOCKED", { message: "Which?", ...more });
  const followUp = () =>
    platform.life.createFollowup(caller, {
      target: { runUid: run.uid },
      message: "This.",
      mode: "normal",
      attachmentUids: [],
    });
  const update = (text: string) =>
    platform.database.sql.query(
      text.replace("$RUN", `'${run.uid}'`).replace("$RETAINING", `'${retaining.session.uid}'`),
    );
  return { caller, retaining, otherWorker, run, followUp, update };
}

test("reserves a run's next execution for the worker that retains its workspace, and sends that worker's id with it", async () => {
  const { retaining, otherWorker, followUp, caller } = await parkedRun();
  await followUp();
  expect(await platform.claim(otherWorker)).toEqual([]);
  const waiting = await platform.run(caller); // runs queued behind it have no preferred worker
  expect(await platform.claim(otherWorker)).toHaveLength(1);
  expect((await platform.getRun(caller, waiting.uid)).state).toBe("PENDING");
  const { assignment } = await acceptExecution(platform, retaining);
  expect(assignment).toMatchObject({ executionSeq: 2, snapshotKey: "" });
});

test.each<[string, (parked: Awaited<ReturnType<typeof parkedRun>>) => Promise<unknown>]>([
  [
    "when the moment has passed",
    ({ update }) => update("UPDATE executions SET preferred_until = clock_timestamp() WHERE run_uid = $RUN"),
  ],
  [
    "when that worker has no free slot",
    ({ retaining, caller }) => platform.run(caller).then(() => platform.claim(retaining)),
  ],
  ["when it drains", ({ update }) => update("UPDATE worker_sessions SET state = 'DRAINING' WHERE uid = $RETAINING")],
  ["when it is gone", ({ update }) => update("DELETE FROM worker_sessions WHERE uid = $RETAINING")],
])("lets another worker claim it %s", async (_name, happen) => {
  const parked = await parkedRun();
  if (_name.includes("slot")) await happen(parked);
  await parked.followUp();
  if (!_name.includes("slot")) await happen(parked);
  expect(await platform.claim(parked.otherWorker)).toHaveLength(1);
});

test("does not wait when no worker retains the workspace, or no longer does", async () => {
  const fresh = await parkedRun({});
  await fresh.followUp();
  expect(await platform.claim(fresh.otherWorker)).toHaveLength(1);
  const late = await parkedRun();
  await late.update("UPDATE executions SET parked_until = clock_timestamp() WHERE run_uid = $RUN");
  await late.followUp();
  expect(await platform.claim(late.otherWorker)).toHaveLength(1);
});
