import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { Database } from "@millwright/database";
import { appendEvents, Consumer, EVENT_TABLES_SQL, localWakeupBus } from "@millwright/events";
import type { EventHandler, EventLog, EventsHandler, FeedReader } from "@millwright/events";
import { currentScope, formatTraceparent, inScope, NO_TRACER, type TraceContext } from "@millwright/telemetry";
import { eventually, memoryLog, memoryTracer, testDatabase } from "@millwright/testing";
import type { TestDatabase } from "@millwright/testing";
import { aLog, anEvent, append, eventDatabase, readAll } from "./setup.ts";

let owner: TestDatabase;
let reader: TestDatabase;
let source: EventLog;
let broken: Set<string>;
let log: ReturnType<typeof memoryLog>;

beforeEach(async () => {
  [owner, reader] = [await eventDatabase(), await testDatabase()];
  await reader.database.pool.query(EVENT_TABLES_SQL);
  await reader.database.pool.query("CREATE TABLE effects (n serial, entity text, version int)");
  source = aLog(owner.database);
  broken = new Set();
  log = memoryLog();
});
afterEach(() => Promise.all([owner.close(), reader.close()]));

/** Stores each event as a row without a unique key, so that a second application would show. */
const storeEvent: EventHandler = async (tx, event) => {
  await tx.query("INSERT INTO effects (entity, version) VALUES ($1, $2)", [event.entityUid, event.entityVersion]);
  if (broken.has(event.entityUid)) throw new Error("cannot be applied");
};

const effects = async (): Promise<string[]> =>
  (await reader.database.sql.query<{ entity: string; version: number }>("SELECT * FROM effects ORDER BY n")).rows.map(
    (r) => `${r.entity}.${r.version}`,
  );

const aConsumer = (
  read: FeedReader = (range) => source.read(range),
  database = reader.database,
  handler = storeEvent,
): Consumer =>
  new Consumer({
    name: "tasks",
    source: "orchestrator",
    read,
    database,
    clock: systemClock,
    log,
    handlers: { "millwright.run.created.v1": handler },
  });

const versions = (entityUid: string, ...numbers: number[]) =>
  numbers.map((entityVersion) => ({ entityUid, entityVersion }));

describe("a consumer", () => {
  test("applies events in order and skips unknown types", async () => {
    await append(owner.database, ...versions("a", 1, 2), { type: "millwright.other.happened.v1" }, ...versions("b", 1));
    await aConsumer().drain();
    expect(await effects()).toEqual(["a.1", "a.2", "b.1"]);
  });

  test("reads only the types it handles, and moves its cursor past the others", async () => {
    const types: string[] = [];
    const read: FeedReader = async (range) => {
      const page = await source.read(range);
      types.push(...page.events.map(({ type }) => type));
      return page;
    };
    await append(
      owner.database,
      ...versions("a", 1),
      ...Array.from({ length: 300 }, () => ({ type: "millwright.other.happened.v1" })),
      ...versions("b", 1),
    );
    const consumer = aConsumer(read);
    await consumer.drain();
    await append(owner.database, { type: "millwright.other.happened.v1" });
    await consumer.drain();
    expect([types, await effects()]).toEqual([Array(2).fill("millwright.run.created.v1"), ["a.1", "b.1"]]);
    expect((await reader.database.sql.query("SELECT position FROM stream.feed_cursors")).rows).toEqual([
      { position: 303 },
    ]);
    expect(consumer.progress()).toMatchObject({ lagEvents: 0 });
  });

  test("stops while a source does not respond", async () => {
    const begun = Promise.withResolvers<void>();
    const consumer = aConsumer(async ({ signal }) => {
      begun.resolve();
      await once(signal!, "abort");
      throw signal!.reason;
    });
    consumer.start();
    await begun.promise;
    await consumer.stop();
    expect(await effects()).toEqual([]);
  });

  test("continues where it stopped", async () => {
    await append(owner.database, ...versions("a", 1));
    await aConsumer().drain();
    await append(owner.database, ...versions("a", 2));
    await aConsumer().drain();
    expect(await effects()).toEqual(["a.1", "a.2"]);
  });

  test("leaves no effect when it dies between effect and commit, and its successor applies once", async () => {
    await append(owner.database, ...versions("a", 1, 2, 3));
    const dying = Database.open(reader.url, { max: 1 });
    const dieAtTheEnd: EventHandler = async (tx, event) => {
      await storeEvent(tx, event);
      if (event.entityVersion === 3)
        await reader.database.sql.query(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = current_database()",
        );
    };
    await expect(aConsumer(undefined, dying, dieAtTheEnd).drain()).rejects.toThrow(/terminat|not queryable/i);
    expect(await effects()).toEqual([]);
    await aConsumer().drain();
    expect(await effects()).toEqual(["a.1", "a.2", "a.3"]);
    await dying.close();
  });

  test("with replicas applies each event once, in order", async () => {
    const expected: string[] = [];
    const replicas = [1, 2, 3].map(() => Database.open(reader.url, { max: 1 }));
    const consumers = replicas.map((database) => aConsumer(undefined, database));
    for (const consumer of consumers) consumer.start();
    for (let version = 1; version <= 60; version++) {
      await append(owner.database, ...versions("a", version));
      for (const consumer of consumers) consumer.wake();
      expected.push(`a.${version}`);
    }
    await eventually(async () => expect(await effects()).toHaveLength(60));
    await Promise.all(consumers.map((c) => c.stop()));
    expect(await effects()).toEqual(expected);
    await Promise.all(replicas.map((d) => d.close()));
  });

  test("is woken by the bus and by its own poll", async () => {
    const wakeups = localWakeupBus();
    const consumer = new Consumer({
      name: "tasks",
      source: "orchestrator",
      read: (r) => source.read(r),
      database: reader.database,
      clock: systemClock,
      log,
      handlers: { "millwright.run.created.v1": storeEvent },
      wakeups,
    });
    consumer.start();
    await append(owner.database, ...versions("a", 1));
    wakeups.notify("millwright.run.created.v1");
    await eventually(async () => expect(await effects()).toHaveLength(1));
    await append(owner.database, ...versions("a", 2));
    await eventually(async () => expect(await effects()).toHaveLength(2));
    await consumer.stop();
  });

  test("survives an absent source", async () => {
    let isAway = true;
    const consumer = aConsumer((range) =>
      isAway ? Promise.reject(new Error("connect ECONNREFUSED")) : source.read(range),
    );
    await append(owner.database, ...versions("a", 1));
    consumer.start();
    await eventually(() => log.entries.length > 0);
    isAway = false;
    await eventually(async () => expect(await effects()).toEqual(["a.1"]));
    await consumer.stop();
  });
});

describe("an event that cannot be applied", () => {
  test("is dead-lettered with the later events of its entity while others continue, and is replayed in order", async () => {
    broken.add("a");
    await append(owner.database, ...versions("a", 1, 2), ...versions("b", 1));
    const consumer = aConsumer();
    await consumer.drain();
    await append(owner.database, ...versions("a", 3), ...versions("b", 2));
    await consumer.drain();
    expect(await effects()).toEqual(["b.1", "b.2"]);
    expect(log.entries.filter((e) => e.level === "error")).toHaveLength(1);

    expect(await consumer.replayDeadLettered()).toEqual({ applied: 0, deadLettered: 3 });
    broken.clear();
    await append(owner.database, ...versions("a", 4)); // not read yet: must not overtake
    expect(await consumer.replayDeadLettered()).toEqual({ applied: 3, deadLettered: 0 });
    await consumer.drain();
    expect(await effects()).toEqual(["b.1", "b.2", "a.1", "a.2", "a.3", "a.4"]);
  });

  test("is replayed once by the replicas when an operator requests it, also by a stopped consumer", async () => {
    broken.add("a");
    await append(owner.database, ...versions("a", 1, 2), ...versions("b", 1));
    const consumer = aConsumer();
    await consumer.drain();
    const request = "UPDATE stream.feed_cursors SET replay_requested_at = now()";
    await reader.database.sql.query(`${request}, stopped_reason = 'log_replaced'`);
    await consumer.drain();
    const { rows } = await reader.database.sql.query(
      `SELECT attempts, replay_requested_at AS requested
         FROM stream.dead_lettered_events
         JOIN stream.feed_cursors USING (reader, source)
        ORDER BY dead_lettered_events.position`,
    );
    expect(rows).toEqual([
      { attempts: 1, requested: null },
      { attempts: 0, requested: null },
    ]);
    broken.clear();
    await consumer.drain();
    expect(await effects()).toEqual(["b.1"]);
    await reader.database.sql.query(`${request}, stopped_reason = NULL`);
    await Promise.all([consumer, aConsumer(), aConsumer()].map((replica) => replica.drain()));
    expect(await effects()).toEqual(["b.1", "a.1", "a.2"]);
  });

  test("that fails for a transient reason while it is replayed is replayed again", async () => {
    broken.add("a");
    await append(owner.database, ...versions("a", 1));
    await aConsumer().drain();
    await reader.database.sql.query("UPDATE stream.feed_cursors SET replay_requested_at = now()");
    let tries = 0;
    const passing: EventHandler = async (tx, event) => {
      broken.clear();
      await storeEvent(tx, event);
      if (tries++ === 0) throw Object.assign(new Error("the lock was not available"), { code: "55P03" });
    };
    const consumer = aConsumer(undefined, undefined, passing);
    await expect(consumer.drain()).rejects.toThrow("lock was not available");
    expect(await effects()).toEqual([]);
    await consumer.drain();
    expect(await effects()).toEqual(["a.1"]);
  });

  test("for a transient reason is not dead-lettered: its batch is rolled back and retried", async () => {
    let tries = 0;
    const passing: EventHandler = async (tx, event) => {
      await storeEvent(tx, event);
      if (event.entityUid === "b" && tries++ === 0)
        throw Object.assign(new Error("the lock was not available"), { code: "55P03" });
    };
    await append(owner.database, ...versions("a", 1), ...versions("b", 1));
    const consumer = aConsumer(undefined, undefined, passing);
    await expect(consumer.drain()).rejects.toThrow("lock was not available");
    expect(await effects()).toEqual([]);
    await consumer.drain();
    expect(await effects()).toEqual(["a.1", "b.1"]);
  });

  test("with a failed statement does not affect the others", async () => {
    const failing: EventHandler = async (tx, event) => {
      if (event.entityUid === "a") await tx.query("SELECT 1 / 0");
      await storeEvent(tx, event);
    };
    await append(owner.database, ...versions("a", 1), ...versions("b", 1));
    await aConsumer(undefined, undefined, failing).drain();
    expect(await effects()).toEqual(["b.1"]);
  });
});

describe("types that are applied in batches", () => {
  const CHANGED = "millwright.run.changed.v1";
  /** The applied events, call by call: "a.1 b.1" in one call, "c" alone. */
  let calls: string[];
  const aBatchConsumer = (failsOn?: string): Consumer => {
    calls = [];
    const batchHandler: EventsHandler = async (tx, events) => {
      calls.push(events.map((event) => `${event.entityUid}.${event.entityVersion}`).join(" "));
      for (const event of events) await storeEvent(tx, event);
      if (events.some(({ entityUid }) => entityUid === failsOn)) throw new Error("cannot be applied");
    };
    const singleHandler: EventHandler = async (tx, event) => {
      calls.push(event.entityUid);
      await storeEvent(tx, event);
    };
    return new Consumer({
      name: "tasks",
      source: "orchestrator",
      read: (range) => source.read(range),
      database: reader.database,
      clock: systemClock,
      log,
      handlers: { "millwright.other.happened.v1": singleHandler },
      batchHandlers: { "millwright.run.created.v1": batchHandler, [CHANGED]: batchHandler },
    });
  };

  test("are passed to their function in one call, in the order of all events", async () => {
    await append(
      owner.database,
      ...versions("a", 1),
      { entityUid: "a", entityVersion: 2, type: CHANGED },
      { type: "millwright.other.happened.v1", entityUid: "x" },
      ...versions("b", 1),
    );
    await aBatchConsumer().drain();
    expect(calls).toEqual(["a.1 a.2", "x", "b.1"]);
    expect(await effects()).toEqual(["a.1", "a.2", "x.1", "b.1"]);
  });

  test("are retried one by one if one of them fails, and only that one is dead-lettered", async () => {
    await append(owner.database, ...versions("a", 1), ...versions("b", 1), ...versions("c", 1));
    await aBatchConsumer("b").drain();
    expect(calls).toEqual(["a.1 b.1 c.1", "a.1", "b.1", "c.1"]);
    expect(await effects()).toEqual(["a.1", "c.1"]);
  });
});

describe("a replaced log", () => {
  test.each([
    ["log_replaced", "UPDATE stream.event_meta SET log_uid = gen_random_uuid()"],
    ["cursor_beyond_head", "UPDATE stream.event_meta SET head = 1; DELETE FROM stream.event_log WHERE position > 1"],
  ])("stops the consumer with a reason: %s", async (reason, damage) => {
    await append(owner.database, ...versions("a", 1, 2));
    const consumer = aConsumer();
    await consumer.drain();
    await owner.database.pool.query(damage);
    await consumer.drain();
    await append(owner.database, ...versions("a", 3));
    await consumer.drain();
    expect(await effects()).toEqual(["a.1", "a.2"]);
    expect(log.entries).toEqual([
      expect.objectContaining({ level: "error", fields: expect.objectContaining({ reason }) }),
    ]);

    await consumer.resumeAfter((await source.head()) - 1);
    await consumer.drain();
    expect(await effects()).toEqual(["a.1", "a.2", "a.3"]);
  });
});

describe("the trace of an event", () => {
  const request: TraceContext = { traceId: "a".repeat(32), spanId: "b".repeat(16), isSampled: true };
  const inRequest = <T>(f: () => T): T => inScope({ trace: request, tracer: NO_TRACER, fields: {} }, f);

  test("is that of the request that wrote it, unless the event names another; its consumer continues it", async () => {
    const other = { ...request, traceId: "c".repeat(32) };
    await inRequest(() =>
      append(
        owner.database,
        { entityUid: "a", requestId: "req-1" },
        { entityUid: "b", traceparent: formatTraceparent(other) },
      ),
    );
    await append(owner.database, { entityUid: "unowned" });
    const tracer = memoryTracer();
    const scopes: unknown[] = [];
    const handler: EventHandler = async () => void scopes.push(currentScope()?.fields);
    const handlers = { "millwright.run.created.v1": handler };
    await new Consumer({
      name: "tasks",
      source: "orchestrator",
      read: (range) => source.read(range),
      database: reader.database,
      clock: systemClock,
      log,
      handlers,
      tracer,
    }).drain();
    expect(tracer.spans).toMatchObject([
      { name: "process millwright.run.created.v1", kind: "consumer", parent: request, links: [request], isEnded: true },
      { parent: other, links: [other] },
      { parent: undefined, links: [] },
    ]);
    expect(scopes[0]).toMatchObject({
      requestId: "req-1",
      traceId: request.traceId,
      eventType: "millwright.run.created.v1",
    });
  });

  test("continues to events that a consumer writes, and is stored with a dead-lettered event", async () => {
    await inRequest(() => append(owner.database, { entityUid: "a" }, { entityUid: "bad" }));
    broken.add("bad");
    const chain = async (...[tx, event]: Parameters<EventHandler>) => {
      await storeEvent(tx, event);
      await appendEvents(tx, [anEvent({ entityUid: `after ${event.entityUid}` })]);
    };
    await aConsumer(undefined, undefined, chain).drain();
    expect(
      (await readAll(aLog(reader.database))).map(({ entityUid, traceparent }) => [entityUid, traceparent]),
    ).toEqual([["after a", formatTraceparent(request)]]);
    expect(log.entries.at(-1)).toMatchObject({
      message: "an event was dead-lettered",
      fields: { requestId: "r", traceId: request.traceId },
    });
  });
});
