import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { pagesRead } from "@millwright/testing";
import type { Run } from "../src/runs/domain/run.ts";
import { blockSnapshotStore } from "../src/conversations/store/block-snapshot-store.ts";
import { findByCauses } from "../src/runs/store/create-store.ts";
import { earlierAttachments } from "../src/runs/store/message-store.ts";
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
    await earlierAttachments(sql, run);
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
