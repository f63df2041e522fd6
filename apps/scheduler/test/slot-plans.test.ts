import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Database, Sql } from "@millwright/database";
import { as, newUid } from "@millwright/ids";
import { testDatabase, type TestDatabase } from "@millwright/testing";
import { migrationsDir } from "../src/compose.ts";
import type { ScheduleUid } from "../src/domain/schedule.ts";
import { recordRuns, slotStore } from "../src/store/slot-store.ts";

const SLOTS = 2_000;
const SLOT_AT = new Date("2026-11-20T10:00:00Z");
const BATCH = 250;
const lease = newUid();
let t: TestDatabase;

/**
 * PostgreSQL's statistics are from when all slots had fired, the usual state; since then many have come due in the same
 * second.
 */
beforeAll(async () => {
  t = await testDatabase(migrationsDir);
  const { sql } = t.database;
  await sql.query("ALTER TABLE slots SET (autovacuum_enabled = off)");
  await sql.query("ALTER TABLE slots DROP CONSTRAINT slots_schedule_uid_fkey");
  await sql.query(
    "INSERT INTO slots (schedule_uid, slot_at, state, run_uid, decided_at) SELECT gen_random_uuid(), $1::timestamptz, 'fired', gen_random_uuid(), $1::timestamptz FROM generate_series(1, 500)",
    [SLOT_AT],
  );
  await sql.query("ANALYZE slots");
  await sql.query(
    "INSERT INTO slots (schedule_uid, slot_at, state, due_at, lease) SELECT gen_random_uuid(), $1::timestamptz, 'due', $1::timestamptz, $2::uuid FROM generate_series(1, $3::integer)",
    [SLOT_AT, lease, SLOTS],
  );
});

afterAll(() => t.close());

type Node = {
  readonly "Actual Loops": number;
  readonly "Actual Rows": number;
  readonly "Rows Removed by Join Filter"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly Plans?: readonly Node[];
};

/** Counts the rows that a plan read and discarded. */
const discardedRows = (node: Node): number =>
  ((node["Rows Removed by Join Filter"] ?? 0) + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"] +
  (node.Plans ?? []).reduce((sum, plan) => sum + discardedRows(plan), 0);

/**
 * Runs the statements of `f` and counts the rows that they read and discarded. Hash joins are off: with an estimate of
 * one row, the choice between a hash join and a nested loop would be arbitrary.
 */
const countDiscarded = (f: (sql: Sql) => Promise<unknown>): Promise<number> =>
  t.database.transaction(async (tx) => {
    await tx.query("SET LOCAL enable_hashjoin = off");
    let count = 0;
    await f({
      async query(text, params) {
        const { rows } = await tx.query<{ "QUERY PLAN": { Plan: Node }[] }>(
          `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`,
          params,
        );
        count += discardedRows(rows[0]!["QUERY PLAN"][0]!.Plan);
        return text.startsWith("SELECT") ? tx.query(text, params) : { rows: [], rowCount: 0 };
      },
    });
    return count;
  });

const dueSlots = async () =>
  (
    await t.database.sql.query<{ uid: ScheduleUid }>(
      "SELECT schedule_uid AS uid FROM slots WHERE state = 'due' ORDER BY 1 LIMIT $1",
      [BATCH],
    )
  ).rows.map(({ uid }) => ({ scheduleUid: as<ScheduleUid>(uid), slotAt: SLOT_AT }));

test("settles decisions without comparing every slot with every decision", async () => {
  const slots = await dueSlots();
  const settle = (sql: Sql) =>
    slotStore({ transaction: (f: (tx: Sql) => Promise<void>) => f(sql) } as unknown as Database, "now()").settle(
      lease,
      slots.map((slot) => ({ slot, decision: { state: "fired", runUid: newUid() } })),
    );
  expect(await countDiscarded(settle)).toBeLessThan(10 * SLOTS);
  const { rows } = await t.database.sql.query<{ n: number }>(
    "SELECT count(*) AS n FROM slots WHERE state = 'fired' AND schedule_uid = ANY($1::uuid[])",
    [slots.map(({ scheduleUid }) => scheduleUid)],
  );
  expect(rows[0]!.n).toBe(BATCH);
});

test("finds the slots of runs by key", async () => {
  const slots = await dueSlots();
  const runs = slots.map((slot) => ({ ...slot, runUid: newUid(), now: SLOT_AT }));
  await t.database.transaction((tx) => recordRuns(tx, runs));
  expect(await countDiscarded((sql) => recordRuns(sql, runs))).toBeLessThan(10 * SLOTS);
});
