import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { DomainError } from "@millwright/errors";
import { domainError } from "@millwright/testing";
import { ActiveExecution } from "../support/fake-worker.ts";
import { aCaller, aRun, teamOf, testPlatform, type TestPlatform } from "../support/platform.ts";

const RUNS = 1_000;
const DEPTH = 10;
const LEVEL = RUNS / DEPTH;
const SPAWNERS = 6;
const ALL = { waitFor: { policy: "all", runUids: [] } } as const;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ poolSize: 12 });
});
afterAll(() => platform.close());

/**
 * Creates a tree with LEVEL runs on each of DEPTH levels. On each level, some runs wait for their children, some run,
 * some are accepted, some are offered, and some are queued. Returns the executions that a worker owns.
 */
async function aTree(caller: ReturnType<typeof aCaller>, worker: Awaited<ReturnType<TestPlatform["worker"]>>) {
  const { uid: root } = await platform.run(caller);
  let parents: string[] = [root];
  const executions: ActiveExecution[] = [];
  const waiting: ActiveExecution[] = [];
  for (let depth = 1; depth <= DEPTH; depth++) {
    const created = await platform.life.createRuns(
      caller,
      Array.from({ length: LEVEL }, (_one, n) => aRun(caller, { parentRunUid: parents[n % parents.length]! })),
    );
    for (const execution of waiting.splice(0)) await execution.complete("WAITING", ALL);
    const offers = await platform.claim(worker, 9); // offers of this level: the deepest runs come first
    const { assignments } = await platform.life.worker.accept(worker.session, offers.slice(0, 7));
    const level = assignments.map((assignment) => new ActiveExecution(platform, worker.session, assignment));
    for (const execution of level.slice(0, 4)) await execution.start();
    waiting.push(...(depth < DEPTH ? level.slice(0, 2) : []));
    executions.push(...(depth < DEPTH ? level.slice(2) : level));
    // The runs that will wait are the parents of the first runs of the next level.
    parents = [...waiting.map(({ assignment }) => assignment.job.run.runUid), ...created.map(({ run }) => run.uid)];
  }
  return { root, executions };
}

test(`Child created while its tree is cancelled: of ${RUNS} runs ${DEPTH} deep that spawn concurrently none remains active or adds cost`, async () => {
  const caller = aCaller();
  const { sql } = platform.database;
  const worker = await platform.worker({ teamUid: teamOf(caller), slots: 200 });
  const { root, executions } = await aTree(caller, worker);
  const states = async () =>
    Object.fromEntries(
      (
        await sql.query<{ state: string; n: number }>(
          "SELECT state, count(*)::int AS n FROM runs WHERE root_run_uid = $1 GROUP BY state",
          [root],
        )
      ).rows.map(({ state, n }) => [state, n]),
    );
  expect(Object.keys(await states()).toSorted((a, b) => a.localeCompare(b))).toEqual([
    "CLAIMED",
    "INPROGRESS",
    "PENDING",
    "QUEUED",
  ]);
  expect(
    (await sql.query("SELECT 1 FROM waits WHERE run_uid IN (SELECT uid FROM runs WHERE root_run_uid = $1)", [root]))
      .rowCount,
  ).toBeGreaterThan(0);

  const { rows: parents } = await sql.query<{ uid: string }>(
    "SELECT uid FROM runs WHERE root_run_uid = $1 AND depth < $2",
    [root, DEPTH],
  );
  let spawned = 0;
  const spawners = Array.from({ length: SPAWNERS }, async (_one, n) => {
    for (let k = n; ; k += 7) {
      const created = await platform
        .run(caller, { parentRunUid: parents[k % parents.length]!.uid })
        .catch((error: unknown) => error);
      if (created instanceof DomainError) return created.reason;
      if (created instanceof Error) throw created;
      spawned += 1;
    }
  });
  await platform.run(caller, { parentRunUid: root });
  expect(await platform.life.cancelRun(caller, { runUid: root, tree: true })).toMatchObject({ state: "CANCELLED" });
  expect(await Promise.all(spawners)).toEqual(Array(SPAWNERS).fill("parent_run_invalid"));
  expect(await states()).toEqual({ CANCELLED: 1 + RUNS + 1 + spawned });

  // No run is claimed any more. A worker that owns an execution is asked to stop it, and its run token is invalid.
  expect(await platform.claim(worker, 50)).toEqual([]);
  for (const execution of executions) {
    expect((await execution.heartbeat()).leases).toMatchObject([{ status: "STOP" }]);
    await expect(platform.life.checkLease(execution.ref)).rejects.toEqual(domainError({ reason: "lease_lost" }));
  }
  expect(await platform.inUse(teamOf(caller))).toBe(executions.length);
  await sql.query("UPDATE leases SET fence_at = clock_timestamp() WHERE fence_at IS NOT NULL");
  await platform.reaperIsAwake();
  await platform.life.reapOnce();
  expect(await platform.inUse(teamOf(caller))).toBe(0);
  for (const execution of executions)
    expect(await execution.append(execution.event("warning", { text: "late" }))).toMatchObject({ error: "LEASE_LOST" });
  expect((await sql.query("SELECT 1 FROM leases UNION ALL SELECT 1 FROM waits")).rowCount).toBe(0);
  const ends = await sql.query<{ n: number }>(
    "SELECT count(e.seq)::int AS n FROM runs r LEFT JOIN stream.run_events e ON e.run_uid = r.uid AND e.kind = 'run_finished' AND e.payload->>'cancelled_by' IS NOT NULL WHERE r.root_run_uid = $1 GROUP BY r.uid",
    [root],
  );
  expect(ends.rows.filter(({ n }) => n !== 1)).toEqual([]);
});
