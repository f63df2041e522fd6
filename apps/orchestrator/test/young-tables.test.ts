import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { pagesRead } from "@millwright/testing";
import type { LockedRun } from "../src/runs/domain/run-change.ts";
import type { Run } from "../src/runs/domain/run.ts";
import { findJobs } from "../src/leases/store/job-store.ts";
import { blockSnapshotStore } from "../src/conversations/store/block-snapshot-store.ts";
import { findByCauses } from "../src/runs/store/create-store.ts";
import { readClaimedExecutions } from "../src/runs/store/claim-store.ts";
import { runsOfExecutions } from "../src/runs/store/locked-runs.ts";
import type { LeaseRef } from "../src/runs/domain/worker-session.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

// PostgreSQL caches a plan until the table is analyzed again, a minute later or more. A plan made for few rows must not
// scan many rows.
const RUNS = 5_000;
/** Number of executions after which PostgreSQL caches a plan. */
const TIMES = 10;
const caller = aCaller();
let platform: TestPlatform;
let run: Run;

beforeAll(async () => {
  platform = await testPlatform({ poolSize: 1 });
  run = await platform.run(caller);
  for (const table of ["runs", "executions", "messages", "run_streams"])
    await platform.database.sql.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
});

afterAll(() => platform.close());

async function addRuns({ withCauses }: { withCauses: boolean }): Promise<void> {
  await platform.database.sql.query(
    `INSERT INTO runs (uid, root_run_uid, depth, owner_type, owner_uid, creator_type, creator_uid, executor_uid, title, state, prompt, mode, interactive,
                       source, conversation_uid, agent_config, frozen, cause_key)
     SELECT u, u, 0, 'team', $1, 'user', 'u', 'u', 'Run ' || n, 'QUEUED', 'p', 'normal', false, 'SCHEDULED_AGENT', gen_random_uuid(), '{}', '{}', CASE WHEN $2 THEN 'cause ' || n END
       FROM (SELECT n, gen_random_uuid() AS u FROM generate_series(1, ${RUNS}) n) g`,
    [teamOf(caller), withCauses],
  );
}

test("files and extent of a conversation are found without reading all runs, if nearly all are new", async () => {
  const { sql } = platform.database;
  const find = async (): Promise<void> => {
    await readClaimedExecutions(sql, [{ ...run, execution: { id: 1 } as LockedRun["execution"] }]);
    await blockSnapshotStore.extent(sql, run);
  };
  for (let n = 0; n < TIMES; n++) await find();
  await addRuns({ withCauses: false });
  expect(await pagesRead(sql, find)).toBeLessThan(200);
});

test("runs of causes are found without reading all of them, if all are new; an unknown cause has none", async () => {
  const { sql } = platform.database;
  const [ownerUid, otherOwner] = [teamOf(caller), newUid()];
  const find = () =>
    findByCauses(sql, [
      { ownerUid, causeKey: "cause 7" },
      { ownerUid: otherOwner, causeKey: "cause 7" },
    ]);
  await sql.query("ANALYZE runs");
  for (let n = 0; n < TIMES; n++) expect(await find()).toEqual([undefined, undefined]);
  await addRuns({ withCauses: true });
  expect(await pagesRead(sql, find)).toBeLessThan(200);
  const { rows } = await sql.query<{ uid: string }>("SELECT uid FROM runs WHERE cause_key = 'cause 7'");
  expect(await find()).toEqual([rows[0]?.uid, undefined]);
});

test("executions are accepted and completed by key, if nearly all are new", async () => {
  const { sql } = platform.database;
  const worker = await platform.worker();
  const offer = async (): Promise<LeaseRef[]> => {
    await Promise.all([platform.run(caller), platform.run(caller)]);
    return (await platform.claim(worker, 2)).map(({ executionId, attempt }) => ({ executionId, attempt }));
  };
  const acceptAndComplete = async (offers: readonly LeaseRef[]) => {
    await findJobs(sql, worker.session, offers);
    await runsOfExecutions(
      sql,
      offers.map(({ executionId }) => executionId),
    );
    const { assignments } = await platform.life.worker.accept(worker.session, offers);
    const results = await platform.life.worker.complete(
      worker.session,
      assignments.map(({ executionId, attempt }) => ({ executionId, attempt, outcome: "DONE", lastClientSeq: 0 })),
    );
    expect(results.map(({ error }) => error)).toEqual(["", ""]);
  };
  for (let n = 0; n < TIMES; n++) await acceptAndComplete(await offer());
  for (let n = 0; n < 3; n++) await addRuns({ withCauses: false });
  await sql.query(
    `INSERT INTO executions (run_uid, seq, state, outcome, lane_id, depth)
     SELECT uid, 1, 'ENDED', 'DONE', (SELECT min(id) FROM lanes), 0 FROM runs WHERE uid NOT IN (SELECT run_uid FROM executions)`,
  );
  await sql.query("INSERT INTO run_streams (run_uid) SELECT uid FROM runs ON CONFLICT DO NOTHING");
  await sql.query(
    "INSERT INTO messages (uid, run_uid, seq, kind, text, mode, author_type, author_uid) SELECT gen_random_uuid(), uid, 9, 'prompt', '', 'normal', 'user', 'u' FROM runs",
  );
  const offers = await offer();
  expect(await pagesRead(sql, () => acceptAndComplete(offers))).toBeLessThan(1_500);
});
