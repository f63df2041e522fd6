import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Pool } from "pg";
import { asDomainError } from "@millwright/errors";
import { Database, isTransient, isUniqueViolation, type Sql } from "@millwright/database";
import { eventually, testDatabase } from "@millwright/testing";
import type { TestDatabase } from "@millwright/testing";
import { SharedConnections } from "../src/shared-connections.ts";

let t: TestDatabase;
let db: Database;
beforeEach(async () => {
  t = await testDatabase();
  db = t.database;
  await db.sql.query("CREATE TABLE things (n int PRIMARY KEY)");
});
afterEach(() => t.close());

const readRows = async () =>
  (await db.sql.query<{ n: number }>("SELECT n FROM things ORDER BY n")).rows.map((row) => row.n);
const rejection = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("an overloaded database is reported as unavailable", () => {
  test("if no connection is free in time", async () => {
    const pool = new Pool({ connectionString: t.url, max: 1 });
    const occupied = await pool.connect();
    pool.options.connectionTimeoutMillis = 1;
    expect(asDomainError(await rejection(pool.query("SELECT 1")))).toMatchObject({
      kind: "unavailable",
      reason: "service_unavailable",
      retryable: true,
    });
    occupied.release();
    await pool.end();
  });

  test("if a statement is cancelled by its timeout", async () => {
    const sleeping = db.transaction(async (tx) => {
      await tx.query("SET LOCAL statement_timeout = 1");
      await tx.query("SELECT pg_sleep(60)");
    });
    expect(asDomainError(await rejection(sleeping))).toMatchObject({
      kind: "unavailable",
      reason: "database_busy",
      retryable: true,
    });
  });
});

describe("a statement", () => {
  test("reads numbers as numbers, times as dates, days as text and JSON as values", async () => {
    const { rows, rowCount } = await db.sql.query(
      `SELECT 9007199254740991::int8 AS big, '2026-01-02T03:04:05.678Z'::timestamptz AS at, '2026-01-02'::date AS day, '{"a":[1]}'::jsonb AS json, $1::jsonb AS given, $2::text[] AS list`,
      [{ b: null }, ["x", "y"]],
    );
    expect(rows).toEqual([
      {
        big: 9007199254740991,
        at: new Date("2026-01-02T03:04:05.678Z"),
        day: "2026-01-02",
        json: { a: [1] },
        given: { b: null },
        list: ["x", "y"],
      },
    ]);
    expect(rowCount).toBe(1);
  });

  test("rejects an int8 that a number cannot represent", async () => {
    await expect(db.sql.query("SELECT 9007199254740993::int8 AS big")).rejects.toThrow("safe integers");
  });

  test("is prepared at its second use, and remains correct", async () => {
    const one = Database.open(t.url, { max: 1 });
    for (const n of [1, 2, 3])
      expect((await one.sql.query("SELECT $1::int + 1 AS n", [n])).rows).toEqual([{ n: n + 1 }]);
    expect((await one.sql.query("SELECT statement FROM pg_prepared_statements")).rows).toEqual([
      { statement: "SELECT $1::int + 1 AS n" },
    ]);
    await one.close();
  });
});

describe("a transaction", () => {
  test("commits what its function wrote, or nothing of it", async () => {
    expect(await db.transaction(async (tx) => (await tx.query("INSERT INTO things VALUES (1)")).rowCount)).toBe(1);
    const failing = db.transaction(async (tx) => {
      await tx.query("INSERT INTO things VALUES (2)");
      throw new Error("changed my mind");
    });
    await expect(failing).rejects.toThrow("changed my mind");
    expect(await readRows()).toEqual([1]);
  });

  test("fails with the first cause if a later statement was awaited first", async () => {
    const failing = db.transaction(async (tx) => {
      const first = tx.query("SELECT 1 / 0");
      first.catch(() => {});
      await tx.query("SELECT 1");
      await first;
    });
    await expect(failing).rejects.toMatchObject({ code: "22012" });
  });

  test("fails if a failed statement was swallowed", async () => {
    const swallowing = db.transaction(async (tx) => {
      await tx.query("INSERT INTO things VALUES (1)");
      await rejection(tx.query("SELECT 1 / 0"));
    });
    await expect(swallowing).rejects.toThrow("rolled back");
    expect(await readRows()).toEqual([]);
  });

  test("fails as transient when its connection is lost, and the pool continues", async () => {
    const one = Database.open(t.url, { max: 1 });
    const broken = one.transaction(async (tx) => {
      const { rows } = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await db.sql.query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
      await tx.query("SELECT 1");
    });
    expect(isTransient(await rejection(broken))).toBe(true);
    expect((await one.sql.query("SELECT 1 AS n")).rows).toEqual([{ n: 1 }]);
    await one.close();
  });

  test("pipelines statements in order, and fails with the first failure", async () => {
    await db.transaction(async (tx) => {
      tx.send?.("INSERT INTO things VALUES (1)");
      tx.send?.("INSERT INTO things SELECT n + 1 FROM things");
    });
    expect(await readRows()).toEqual([1, 2]);
    const failing = (after: (tx: Sql) => unknown) =>
      db.transaction(async (tx) => {
        tx.send?.("INSERT INTO things VALUES (3)");
        tx.send?.("INSERT INTO things VALUES (1)");
        tx.send?.("INSERT INTO things VALUES (4)");
        await after(tx);
      });
    expect(isUniqueViolation(await rejection(failing(() => {})))).toBe(true);
    expect(isUniqueViolation(await rejection(failing((tx) => tx.query("SELECT 1"))))).toBe(true);
    await expect(failing(() => Promise.reject(new Error("changed my mind")))).rejects.toThrow("changed my mind");
    expect(await readRows()).toEqual([1, 2]);
  });

  test("is retried after a deadlock, and announces only what was committed", async () => {
    await db.sql.query("INSERT INTO things VALUES (1), (2)");
    const received: string[][] = [];
    db.onCommit((topics) => received.push([...topics]));
    let tries = 0;
    const lockBoth = (first: number, second: number) =>
      db.transaction(async (tx) => {
        tx.announce?.(`try ${++tries}`);
        tx.send?.("SELECT n FROM things WHERE n = $1 FOR UPDATE", [first]);
        await tx.query("SELECT 1");
        holding += 1;
        await eventually(() => holding >= 2);
        await tx.query("SELECT n FROM things WHERE n = $1 FOR UPDATE", [second]);
        return first;
      });
    let holding = 0;
    expect(await Promise.all([lockBoth(1, 2), lockBoth(2, 1)])).toEqual([1, 2]);
    expect(tries).toBeGreaterThanOrEqual(3);
    expect([received.length, new Set(received.flat()).size]).toEqual([2, 2]);
  });

  test("returns its connection in every case", async () => {
    const one = Database.open(t.url, { max: 1 });
    for (let i = 0; i < 3; i++) await rejection(one.transaction(() => Promise.reject(new Error("no"))));
    for (let i = 0; i < 3; i++) await one.transaction((tx) => tx.query("SELECT 1"));
    expect([one.pool.totalCount, one.pool.idleCount]).toEqual([1, 1]);
    await one.close();
  });
});

test("statements by key do not read whole tables where an index fits; searches may; none is compiled", async () => {
  const settings = async (sql: Sql) =>
    (await sql.query("SELECT current_setting('enable_seqscan') AS seqscan, current_setting('jit') AS jit")).rows;
  const byKey = [{ seqscan: "off", jit: "off" }];
  expect(await Promise.all([settings(db.sql), db.transaction(settings), settings(db.lookups)])).toEqual([
    byKey,
    byKey,
    byKey,
  ]);
  expect(await settings(db.searches)).toEqual([{ seqscan: "on", jit: "off" }]);
});

describe("a lookup", () => {
  const number = async (n: number) =>
    (await db.lookups.query<{ n: number }>("SELECT n FROM things WHERE n = $1", [n])).rows[0]?.n;
  const sharedPid = async () =>
    (await db.lookups.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]!.pid;
  /** Until then the pool executes statements. */
  const whenShared = () =>
    eventually(async () =>
      expect(
        (
          await db.lookups.query(
            "SELECT current_setting('plan_cache_mode') AS plans, current_setting('enable_seqscan') AS seqscan, current_setting('jit') AS jit",
          )
        ).rows,
      ).toEqual([{ plans: "force_generic_plan", seqscan: "off", jit: "off" }]),
    );

  test("shares its connection with others without sharing their errors", async () => {
    await db.sql.query("INSERT INTO things SELECT generate_series(1, 50)");
    expect(await number(7)).toBe(7);
    await whenShared();
    const broken = rejection(db.lookups.query("SELECT 1 / 0"));
    const found = await Promise.all(Array.from({ length: 60 }, (_, n) => number(n + 1)));
    expect(found).toEqual(Array.from({ length: 60 }, (_, n) => (n < 50 ? n + 1 : undefined)));
    expect(await broken).toMatchObject({ code: "22012" });
    expect(new Set(await Promise.all([sharedPid(), sharedPid(), sharedPid()])).size).toBe(1);
  });

  test("uses the pool while its connection is lost, and a new connection later", async () => {
    await sharedPid();
    await whenShared();
    const pid = await sharedPid();
    await db.sql.query("SELECT pg_terminate_backend($1)", [pid]);
    await eventually(async () => expect(await sharedPid()).not.toBe(pid));
    await whenShared();
    expect(await sharedPid()).not.toBe(pid);
  });

  test("uses the pool if the settings of its connection are rejected, and closes that connection", async () => {
    await db.sql.query("CREATE SEQUENCE attempts");
    const config = { connectionString: t.url, application_name: "rejected" };
    const settings = "SELECT nextval('attempts'); SELECT 1 / 0";
    const shared = new SharedConnections(config, settings, 1, (query) => db.pool.query(query));
    expect((await shared.query({ text: "SELECT 1 AS n" })).rows).toEqual([{ n: 1 }]);
    await eventually(async () => {
      const { rows } = await db.sql.query(
        "SELECT is_called, (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rejected') AS open FROM attempts",
      );
      expect(rows).toEqual([{ is_called: true, open: 0 }]);
    });
    await shared.close();
  });
});

describe("topics", () => {
  test("are called once after the commit, and not after a rollback", async () => {
    const received: string[][] = [];
    const stop = db.onCommit((topics) => received.push([...topics]));
    await db.transaction(async (tx) => {
      tx.announce?.("events");
      tx.announce?.("events");
      tx.announce?.("work");
      expect(received).toEqual([]);
    });
    await rejection(
      db.transaction(async (tx) => {
        tx.announce?.("lost");
        throw new Error("no");
      }),
    );
    await db.transaction((tx) => tx.query("SELECT 1"));
    db.sql.announce?.("single");
    stop();
    db.sql.announce?.("unsubscribed");
    expect(received).toEqual([["events", "work"], ["single"]]);
  });
});

describe("an error", () => {
  test("of a unique key names the key and is not transient", async () => {
    await db.sql.query("INSERT INTO things VALUES (1)");
    const error = await rejection(db.sql.query("INSERT INTO things VALUES (1)"));
    expect([isUniqueViolation(error), isTransient(error)]).toEqual([true, false]);
    expect(isUniqueViolation(new Error("other"))).toBe(false);
  });

  test("of an absent server is transient", async () => {
    const nowhere = Database.open("postgresql://nobody@127.0.0.1:1/none", { max: 1 });
    expect(isTransient(await rejection(nowhere.sql.query("SELECT 1")))).toBe(true);
    await nowhere.close();
  });

  test("of a repeated deadlock is transient", async () => {
    expect(
      isTransient(await rejection(db.sql.query("DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = '40P01'; END $$"))),
    ).toBe(true);
  });
});
