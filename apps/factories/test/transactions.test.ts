import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Database, type Sql } from "@millwright/database";
import { as, type FactoryUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError, eventually } from "@millwright/testing";
import { systemClock } from "@millwright/clock";
import { applyStore } from "../src/store/apply-store.ts";
import { changesOf, openPrisma, type Changes, type PrismaTx } from "../src/store/prisma-client.ts";
import { OWNER, startWorld, TEAM, type World } from "./setup.ts";
import { underLease } from "../src/usecases/apply-lease.ts";
import { aTree } from "./trees.ts";

let w: World;
let database: Database;
let changes: Changes;
let applies: ReturnType<typeof applyStore>;
beforeAll(async () => {
  w = await startWorld();
  database = Database.open(w.t.url, { max: 4 });
  const prisma = openPrisma(database);
  changes = changesOf(prisma, () => {});
  applies = applyStore(prisma, changes);
  await database.sql.query("CREATE TABLE pair (n int PRIMARY KEY, m int NOT NULL)");
});
afterAll(async () => {
  await database.close();
  await w.stop();
});

/** Resolves when the given number of statements wait for locks. */
const untilWaiting = (count: number) =>
  eventually(async () => {
    const { rows } = await database.lookups.query<{ count: number }>(
      "SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    expect(rows[0]!.count).toBe(count);
  });

describe("a change that PostgreSQL aborts in a deadlock", () => {
  /** Runs two changes that lock the same two rows in opposite order. */
  async function crossed(lock: (tx: PrismaTx, sql: Sql, n: number) => Promise<unknown>): Promise<number> {
    await database.sql.query("TRUNCATE pair");
    await database.sql.query("INSERT INTO pair VALUES (1, 0), (2, 0)");
    let tries = 0;
    let bothLocked!: () => void;
    const locked = new Promise<void>((resolve) => (bothLocked = resolve));
    let lockCount = 0;
    const one = (first: number, second: number) =>
      changes.change(async (tx, sql) => {
        tries++;
        await lock(tx, sql, first);
        if (++lockCount === 2) bothLocked();
        await locked;
        await lock(tx, sql, second);
      });
    await Promise.all([one(1, 2), one(2, 1)]);
    expect((await database.sql.query("SELECT m FROM pair")).rows).toEqual([{ m: 2 }, { m: 2 }]);
    return tries;
  }

  test.each<[string, (tx: PrismaTx, sql: Sql, n: number) => Promise<unknown>]>([
    ["in a statement of ours", (_tx, sql, n) => sql.query("UPDATE pair SET m = m + 1 WHERE n = $1", [n])],
    [
      "in a raw statement of Prisma's that answers rows",
      (tx, _sql, n) => tx.$queryRaw`UPDATE pair SET m = m + 1 WHERE n = ${n} RETURNING n`,
    ],
    ["in a raw statement of Prisma's", (tx, _sql, n) => tx.$executeRaw`UPDATE pair SET m = m + 1 WHERE n = ${n}`],
  ])("is retried: %s", async (_where, lock) => {
    expect(await crossed(lock)).toBeGreaterThanOrEqual(3);
  });
});

test("confirming a version locks in the order of applies, so that they cannot deadlock", async () => {
  const factoryUid = as<FactoryUid>((await w.aFactory()).uid);
  await w.factories.putSource({ factoryUid, source: { kind: "files", files: aTree() } }, call(OWNER));
  await w.factories.applySource({ factoryUid }, call(OWNER, { timeoutMs: 30_000 }));
  const applying = await database.transaction(async (apply) => {
    await apply.query("SELECT 1 FROM definition_sources WHERE factory_uid = $1 FOR UPDATE", [factoryUid]);
    const confirming = applies.confirm(factoryUid, 1, null);
    await untilWaiting(1);
    expect((await apply.query("SELECT 1 FROM factories WHERE uid = $1 FOR UPDATE NOWAIT", [factoryUid])).rowCount).toBe(
      1,
    );
    return { confirming };
  });
  await applying.confirming;
  expect(
    (await database.sql.query("SELECT foreman_agent_uid AS uid FROM factories WHERE uid = $1", [factoryUid])).rows,
  ).toEqual([{ uid: null }]);
});

test("a factory that is being deleted accepts no new task", async () => {
  const factoryUid = as<FactoryUid>((await w.aFactory()).uid);
  const { conversationUid } = w.orchestrator.created({ teamUid: TEAM });
  const creating = await database.transaction(async (deleting) => {
    await deleting.query("SELECT 1 FROM factories WHERE uid = $1 FOR UPDATE", [factoryUid]);
    await deleting.query("UPDATE factories SET deleted_at = now() WHERE uid = $1", [factoryUid]);
    const created = w.tasks.createTask({ factoryUid, title: "Late", conversationUid }, call(OWNER));
    const outcome = Promise.allSettled([created]);
    await untilWaiting(1);
    return { outcome };
  });
  expect(await creating.outcome).toEqual([
    { status: "rejected", reason: domainError({ kind: "not_found", reason: "factory_not_found" }) },
  ]);
});

test("the lease of an apply is renewed while the apply runs, and never taken back from a newer owner", async () => {
  const factoryUid = as<FactoryUid>((await w.aFactory()).uid);
  await w.factories.putSource({ factoryUid, source: { kind: "files", files: aTree() } }, call(OWNER));
  const lease = async () =>
    (
      await database.sql.query<{ token: string | null; until: Date }>(
        "SELECT apply_lease_uid AS token, apply_lease_until AS until FROM definition_sources WHERE factory_uid = $1",
        [factoryUid],
      )
    ).rows[0]!;
  let renewals = 0;
  const renew = async (...args: Parameters<typeof applies.renew>) => (await applies.renew(...args), void renewals++);
  const renewedTwice = async () => {
    const before = renewals;
    await eventually(() => renewals >= before + 2);
  };
  await underLease(
    { applies: { ...applies, renew }, clock: systemClock },
    factoryUid,
    async (token) => {
      const first = await lease();
      expect(first.token).toBe(token);
      await renewedTwice();
      expect((await lease()).until.getTime()).toBeGreaterThan(first.until.getTime());
      const [rival] = (
        await database.sql.query<{ token: string }>(
          "UPDATE definition_sources SET apply_lease_uid = gen_random_uuid() WHERE factory_uid = $1 RETURNING apply_lease_uid AS token",
          [factoryUid],
        )
      ).rows;
      await renewedTwice();
      expect(await lease()).toMatchObject(rival!);
      await database.sql.query("UPDATE definition_sources SET apply_lease_uid = NULL WHERE factory_uid = $1", [
        factoryUid,
      ]);
      await renewedTwice();
      expect(await lease()).toMatchObject({ token: null });
    },
    20,
  );
});
