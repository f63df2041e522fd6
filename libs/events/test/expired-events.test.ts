import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { Consumer, EventLog, EVENT_TABLES_SQL } from "@millwright/events";
import { memoryLog, testDatabase, type TestDatabase } from "@millwright/testing";
import { append, eventDatabase, readAll } from "./setup.ts";

const DAYS = 30;

let owner: TestDatabase;
let eventLog: EventLog;
beforeEach(async () => {
  owner = await eventDatabase();
  eventLog = new EventLog({ database: owner.database, clock: systemClock, log: memoryLog(), retentionDays: DAYS });
});
afterEach(() => owner.close());

const query = (text: string) => owner.database.sql.query<{ name: string }>(text);
const age = (days: number, where: string) =>
  query(`UPDATE stream.event_log SET logged_at = now() - interval '${days} days' WHERE ${where}`);
const positions = async () => (await readAll(eventLog)).map(({ position }) => position);
const entities = (count: number) => Array.from({ length: count }, (_, n) => ({ entityUid: `e${n}` }));

test("deletes the events that are older than the retention time, and the head stays", async () => {
  await append(owner.database, ...entities(4));
  await eventLog.head();
  await age(DAYS + 1, "position <= 2");
  expect(await eventLog.prune()).toBe(false);
  expect(await positions()).toEqual([3, 4]);
  expect(await eventLog.read({ after: 0, limit: 10 })).toMatchObject({ head: 4, first: 3 });
  await age(DAYS + 1, "true");
  await eventLog.prune();
  expect(await eventLog.read({ after: 4, limit: 10 })).toMatchObject({ head: 4, first: 5, events: [] });
  await append(owner.database, { entityUid: "next" });
  expect(await positions()).toEqual([5]);
});

test("drops a partition whose events have all expired, in which nothing is deleted row by row", async () => {
  await append(owner.database, ...entities(2));
  await eventLog.head();
  await query("UPDATE stream.event_meta SET head = 999999"); // the next batch is in a second partition
  await append(owner.database, { entityUid: "a" });
  await eventLog.head();
  await append(owner.database, { entityUid: "b" });
  await eventLog.head();
  await age(DAYS + 1, "position <= 1000000");
  expect(await eventLog.prune()).toBe(true);
  const { rows } = await query(
    "SELECT inhrelid::regclass::text AS name FROM pg_inherits WHERE inhparent = 'stream.event_log'::regclass",
  );
  expect(rows).toEqual([{ name: "stream.event_log_1000001" }]);
  expect(await positions()).toEqual([1_000_001]);
});

test("retains events that are not published to NATS yet", async () => {
  await append(owner.database, ...entities(3));
  await eventLog.head();
  await age(DAYS + 1, "true");
  await query("INSERT INTO stream.feed_cursors (reader, source, position) VALUES ('nats-relay', 'own', 1)");
  await eventLog.prune();
  expect(await positions()).toEqual([2, 3]);
});

test("a consumer that has missed expired events stops with a reason; a new one begins with the oldest event", async () => {
  const reader = await testDatabase();
  try {
    await reader.database.pool.query(EVENT_TABLES_SQL);
    const applied: string[] = [];
    const log = memoryLog();
    const consumer = (name: string) =>
      new Consumer({
        name,
        source: "orchestrator",
        read: (range) => eventLog.read(range),
        database: reader.database,
        clock: systemClock,
        log,
        handlers: {
          "millwright.run.created.v1": async (_tx, event) => void applied.push(`${name} ${event.entityUid}`),
        },
      });
    await append(owner.database, { entityUid: "a" });
    await consumer("late").drain();
    await append(owner.database, { entityUid: "b" }, { entityUid: "c" });
    await eventLog.head();
    await age(DAYS + 1, "position <= 2");
    await eventLog.prune();
    await consumer("late").drain();
    await consumer("new").drain();
    expect(applied).toEqual(["late a", "new c"]);
    expect(log.entries).toEqual([
      expect.objectContaining({ level: "error", fields: expect.objectContaining({ reason: "events_expired" }) }),
    ]);
  } finally {
    await reader.close();
  }
});

test("retains everything without a retention time", async () => {
  const forever = new EventLog({ database: owner.database, clock: systemClock, log: memoryLog() });
  await append(owner.database, ...entities(1));
  await forever.head();
  await age(10_000, "true");
  expect(await forever.prune()).toBe(false);
  expect(await positions()).toEqual([1]);
});
