import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Database } from "@millwright/database";
import { appendEvents } from "@millwright/events";
import type { EventLog, FeedPage } from "@millwright/events";
import { eventually } from "@millwright/testing";
import type { TestDatabase } from "@millwright/testing";
import { aLog, anEvent, append, eventDatabase, readAll } from "./setup.ts";

let t: TestDatabase;
let log: EventLog;
beforeEach(async () => {
  t = await eventDatabase();
  log = aLog(t.database);
});
afterEach(async () => {
  await log.stop();
  await t.close();
});

describe("the log", () => {
  test("stores an event only when its transaction commits", async () => {
    await append(t.database, { entityUid: "committed" });
    const undone = t.database.transaction(async (tx) => {
      await appendEvents(tx, [anEvent({ entityUid: "undone" })]);
      throw new Error("the use case failed");
    });
    await expect(undone).rejects.toThrow("the use case failed");
    expect((await readAll(log)).map((e) => e.entityUid)).toEqual(["committed"]);
  });

  test("returns what was written", async () => {
    const event = anEvent({
      teamUid: "0199a000-0000-7000-8000-000000000001",
      cause: "c",
      occurredAt: new Date("2026-01-02T03:04:05.678Z"),
      payload: { text: "ü'\"", nothing: null, list: [1, { a: true }] },
      entityVersion: 7,
    });
    await append(t.database, event);
    expect(await readAll(log)).toEqual([{ ...event, uid: expect.any(String), position: 1 }]);
  });

  test("a transaction that commits late gets a position that no reader has passed", async () => {
    const late = await t.database.pool.connect();
    await late.query("BEGIN");
    await appendEvents(
      { query: async (text, params) => ({ rows: (await late.query(text, [...(params ?? [])])).rows, rowCount: 0 }) },
      [anEvent({ entityUid: "late" })],
    );
    await append(t.database, { entityUid: "early" });
    const first = await log.read({ after: 0, limit: 10 });
    expect(first.events.map((e) => e.entityUid)).toEqual(["early"]);
    await late.query("COMMIT");
    late.release();
    const rest = await log.read({ after: first.head, limit: 10 });
    expect(rest.events.map((e) => [e.entityUid, e.position])).toEqual([["late", 2]]);
  });

  test("a reader that follows many concurrent writers sees every event once, without gaps, each entity in order", async () => {
    const writers = Database.open(t.url, { max: 12 });
    const other = aLog(writers); // a competing sequencer
    other.start();
    log.start();
    const [entities, each] = [12, 25];
    const write = async (entity: number) => {
      for (let version = 1; version <= each; version++) {
        await writers.transaction(async (tx) => {
          await tx.query("SELECT pg_advisory_xact_lock($1)", [entity]); // in place of the aggregate's row lock
          await appendEvents(tx, [anEvent({ entityUid: `run-${entity}`, entityVersion: version })]);
          if (version % 3 === 0) await tx.query("SELECT pg_sleep(0.004)"); // stays open while others commit
        });
      }
    };
    const writing = Promise.all(Array.from({ length: entities }, (_, i) => write(i)));
    const seen: { position: number; entityUid: string; entityVersion: number }[] = [];
    while (seen.length < entities * each) {
      const page = await log.read({ after: seen.at(-1)?.position ?? 0, limit: 17, waitMs: 5000 });
      expect(page.events.length).toBeGreaterThan(0);
      seen.push(...page.events);
    }
    await writing;
    await other.stop();
    await writers.close();
    expect(seen.map((e) => e.position)).toEqual(Array.from({ length: entities * each }, (_, i) => i + 1));
    for (let i = 0; i < entities; i++) {
      const versions = seen.filter((e) => e.entityUid === `run-${i}`).map((e) => e.entityVersion);
      expect(versions).toEqual(Array.from({ length: each }, (_, n) => n + 1));
    }
  });

  test("two concurrent sequencers leave no gap and no duplicate", async () => {
    const others = Array.from({ length: 4 }, () => Database.open(t.url, { max: 2 }));
    const logs = others.map(aLog);
    await append(t.database, ...Array.from({ length: 1234 }, (_, i) => ({ entityUid: `${i}` })));
    await Promise.all(logs.map((l) => l.head()));
    const events = [
      ...(await log.read({ after: 0, limit: 1000 })).events,
      ...(await log.read({ after: 1000, limit: 1000 })).events,
    ];
    expect(events.map((e) => [e.position, e.entityUid])).toEqual(
      Array.from({ length: 1234 }, (_, i) => [i + 1, `${i}`]),
    );
    await Promise.all(others.map((o) => o.close()));
  });

  test("continues in a new partition before the last one is full", async () => {
    await t.database.sql.query("UPDATE stream.event_meta SET head = 999990");
    await append(t.database, ...Array.from({ length: 20 }, () => ({})));
    const { events, head } = await log.read({ after: 999_990, limit: 100 });
    expect([events.length, events.at(-1)?.position, head]).toEqual([20, 1_000_010, 1_000_010]);
    const { rows } = await t.database.sql.query(`SELECT count(*) AS n FROM stream.event_log_1000001`);
    expect(rows).toEqual([{ n: 10 }]);
  });
});

describe("a reader with a type filter", () => {
  const OTHER = { type: "millwright.other.happened.v1" };
  const ask = (after: number, limit: number) =>
    log.read({ after, limit, types: ["millwright.run.created.v1", "millwright.run.finished.v1"] });
  const positions = ({ events, through }: FeedPage) => [events.map(({ position }) => position), through];

  test("gets only these types, and the position of the end of its page", async () => {
    await append(t.database, OTHER, {}, OTHER, { type: "millwright.run.finished.v1" }, OTHER);
    expect(positions(await ask(0, 10))).toEqual([[2, 4], 5]);
    expect(positions(await ask(0, 2))).toEqual([[2, 4], 4]);
    expect(positions(await ask(0, 1))).toEqual([[2], 2]);
    expect(positions(await ask(4, 10))).toEqual([[], 5]);
    expect(positions(await ask(5, 10))).toEqual([[], 5]);
    expect(await ask(9, 10)).toMatchObject({ head: 5, through: 9, events: [] });
  });

  test("scans many other events one page at a time", async () => {
    await t.database.pool.query(
      `INSERT INTO stream.event_pending (uid, type, entity, entity_uid, entity_version, actor_type, actor_uid, request_id, occurred_at, payload)
       SELECT gen_random_uuid(), 'millwright.other.happened.v1', 'other', 'x', 1, 'user', 'u', 'r', now(), '{}' FROM generate_series(1, 10001)`,
    );
    await append(t.database, {});
    expect(positions(await ask(0, 10))).toEqual([[], 10_000]);
    expect(positions(await ask(10_000, 10))).toEqual([[10_002], 10_002]);
  });

  test("waits for events that it has not scanned yet", async () => {
    log.start();
    const waiting = log.read({ after: 0, limit: 10, waitMs: 20_000, types: ["millwright.run.created.v1"] });
    await append(t.database, OTHER);
    expect(positions(await waiting)).toEqual([[], 1]);
  });
});

describe("a waiting reader", () => {
  test("gets an event when it is committed", async () => {
    log.start();
    const waiting = log.read({ after: 0, limit: 10, waitMs: 20_000 });
    await append(t.database, {});
    expect((await waiting).events).toHaveLength(1);
  });

  test("gets an event that another process sequenced", async () => {
    log.start();
    const waiting = log.read({ after: 0, limit: 10, waitMs: 20_000 });
    const elsewhere = Database.open(t.url, { max: 1 });
    await append(elsewhere, {});
    await aLog(elsewhere).head();
    expect((await waiting).events).toHaveLength(1);
    await elsewhere.close();
  });

  test("is released by its signal, its timeout and stop", async () => {
    log.start();
    const abort = new AbortController();
    const waits = [
      log.read({ after: 0, limit: 1, waitMs: 20_000, signal: abort.signal }),
      log.read({ after: 0, limit: 1, waitMs: 1 }),
      log.read({ after: 0, limit: 1, waitMs: 20_000 }),
    ];
    abort.abort();
    await Promise.all(waits.slice(0, 2));
    await log.stop();
    expect((await Promise.all(waits)).map((page) => page.events)).toEqual([[], [], []]);
  });

  test("returns at once when the position is beyond the head", async () => {
    expect(await log.read({ after: 5, limit: 1, waitMs: 20_000 })).toMatchObject({ head: 0, events: [] });
  });
});

test("a started log sequences commits without a notification by polling", async () => {
  log.start();
  await t.database.pool.query(
    `INSERT INTO stream.event_pending (uid, type, entity, entity_uid, entity_version, actor_type, actor_uid, request_id, occurred_at, payload)
     VALUES (gen_random_uuid(), 't', 'run', 'x', 1, 'user', 'u', 'r', now(), '{}')`,
  );
  await eventually(async () => expect((await t.database.sql.query("SELECT 1 FROM stream.event_log")).rowCount).toBe(1));
});
