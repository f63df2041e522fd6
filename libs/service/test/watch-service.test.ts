import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import {
  appendEvents,
  Consumer,
  EVENT_TABLES_SQL,
  EventLog,
  type EventHandler,
  type FeedReader,
} from "@millwright/events";
import { Metrics } from "@millwright/telemetry";
import { memoryLog, testDatabase, type TestDatabase } from "@millwright/testing";
import { enqueueWork, WORK_TABLES_SQL, WorkQueue } from "@millwright/work";
import { watchService } from "../src/index.ts";

let t: TestDatabase;
let metrics: Metrics;
beforeEach(async () => {
  t = await testDatabase();
  await t.database.pool.query(EVENT_TABLES_SQL + WORK_TABLES_SQL);
  metrics = new Metrics();
});
afterEach(() => t.close());

const append = (...entities: string[]) =>
  t.database.transaction((tx) =>
    appendEvents(
      tx,
      entities.map((entityUid) => ({
        type: "millwright.run.created.v1",
        entity: "run",
        entityUid,
        entityVersion: 1,
        actor: { type: "user", uid: "u" },
        requestId: "r",
        payload: {},
      })),
    ),
  );

/** Returns the lines of some metrics, without the service's own label. */
async function metricLines(...names: string[]): Promise<string[]> {
  const lines = (await metrics.text()).split("\n").filter((line) => names.some((name) => line.startsWith(`${name}{`)));
  return lines.map((line) => line.replace('service="factories"', "").replace("{,", "{"));
}

test("a service reports its log, the progress of its consumers, dead-lettered events, and its work", async () => {
  const [log, clock] = [memoryLog(), systemClock];
  const eventLog = new EventLog({ database: t.database, clock, log });
  let read: FeedReader = (range) => eventLog.read(range);
  const apply: EventHandler = async (_tx, { entityUid }) => {
    if (entityUid === "bad") throw new Error("cannot be applied");
  };
  const consumer = new Consumer({
    name: "tasks",
    source: "orchestrator",
    read: (range) => read(range),
    database: t.database,
    clock,
    log,
    handlers: { "millwright.run.created.v1": apply },
  });
  const work = new WorkQueue({ database: t.database, clock, log, handlers: {} });
  const stop = watchService({ service: "factories", metrics, database: t.database, consumers: [consumer], work });

  await append("a", "bad", "b");
  await t.database.sql.query("UPDATE stream.event_pending SET occurred_at = now() - interval '1 minute'");
  expect(
    await metricLines("millwright_events_head", "millwright_events_pending", "millwright_feed_lag_events"),
  ).toEqual(["millwright_events_head{} 0", "millwright_events_pending{} 3"]);
  expect(
    Number((await metricLines("millwright_events_oldest_pending_seconds"))[0]!.split(" ")[1]),
  ).toBeGreaterThanOrEqual(60);

  await eventLog.head();
  const { read: whole } = { read };
  // it has read their position, and cannot have the events yet
  read = async (range) => ({ ...(await whole(range)), through: range.after, events: [] });
  await consumer.drain();
  expect(await metricLines("millwright_events_pending", "millwright_feed_lag_events")).toEqual([
    "millwright_events_pending{} 0",
    'millwright_feed_lag_events{reader="tasks",source="orchestrator"} 3',
  ]);
  read = whole;
  await consumer.drain();
  await enqueueWork(t.database.sql, { kind: "cancel-tree", key: "1", payload: null });
  expect(
    await metricLines(
      "millwright_feed_lag_events",
      "millwright_events_dead_lettered",
      "millwright_feed_stopped",
      "millwright_feed_lag_seconds",
      "millwright_work_items",
    ),
  ).toEqual([
    'millwright_events_dead_lettered{reader="tasks",source="orchestrator"} 1',
    'millwright_feed_stopped{reader="tasks",source="orchestrator"} 0',
    'millwright_feed_lag_events{reader="tasks",source="orchestrator"} 0',
    'millwright_feed_lag_seconds{reader="tasks",source="orchestrator"} 0',
    'millwright_work_items{kind="cancel-tree",state="waiting"} 1',
  ]);
  expect(await metricLines("millwright_database_connections")).toHaveLength(4);

  await t.database.sql.query("UPDATE stream.event_meta SET log_uid = gen_random_uuid()");
  await consumer.drain();
  expect(await metricLines("millwright_feed_stopped")).toEqual([
    'millwright_feed_stopped{reader="tasks",source="orchestrator"} 1',
  ]);
  stop();
  expect(await metricLines("millwright_events_head")).toEqual([]);
});

test("a statement waits for a connection if all are in use, and not if one is free", async () => {
  const stop = watchService({ service: "factories", metrics, database: t.database, consumers: [] });
  const waiting = async () =>
    (await metricLines("millwright_database_connections")).find((line) => /waiting/.test(line));
  const { pool } = t.database;
  const free = [pool.query("SELECT 1"), pool.query("SELECT 1")];
  expect(await waiting()).toBe('millwright_database_connections{state="waiting"} 0');
  await Promise.all(free);

  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  const blocked = [pool.query("SELECT 1"), pool.query("SELECT 1")];
  const text = waiting();
  for (const client of clients) client.release();
  expect(await text).toBe('millwright_database_connections{state="waiting"} 2');
  await Promise.all(blocked);
  stop();
});
