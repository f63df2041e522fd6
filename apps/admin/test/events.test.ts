import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { appendEvents, Consumer, EventLog } from "@millwright/events";
import { memoryLog, testDatabase, type TestDatabase } from "@millwright/testing";
import { migrationsOf, servicesWithDatabase } from "../src/platform.ts";
import { admin, namedDatabases } from "./support/admin.ts";

const TYPE = "millwright.run.finished.v1";
const databases: Record<string, TestDatabase> = {};
let env: Record<string, string>;
/** Entities whose events cannot be applied, and the events that were applied. */
let broken: Set<string>;
let applied: string[];
let consumer: Consumer;

beforeAll(async () => {
  for (const service of servicesWithDatabase()) databases[service] = await testDatabase(migrationsOf(service));
  env = namedDatabases(databases);
});
afterAll(() => Promise.all(Object.values(databases).map((database) => database.close())));

beforeEach(async () => {
  const { metrics, orchestrator } = databases;
  await metrics!.database.sql.query("TRUNCATE stream.dead_lettered_events, stream.feed_cursors");
  await orchestrator!.database.sql.query("TRUNCATE stream.event_pending, stream.event_log");
  await orchestrator!.database.sql.query("UPDATE stream.event_meta SET head = 0");
  [broken, applied] = [new Set(["a"]), []];
  const log = new EventLog({ database: orchestrator!.database, clock: systemClock, log: memoryLog() });
  consumer = new Consumer({
    name: "facts",
    source: "orchestrator",
    read: (range) => log.read(range),
    database: metrics!.database,
    clock: systemClock,
    log: memoryLog(),
    handlers: {
      [TYPE]: async (_tx, { entityUid, entityVersion }) => {
        if (broken.has(entityUid)) throw new Error("the price is missing");
        applied.push(`${entityUid}.${entityVersion}`);
      },
    },
  });
  for (const [entityUid, entityVersion] of [
    ["a", 1],
    ["a", 2],
    ["b", 1],
  ] as const)
    await orchestrator!.database.transaction((tx) =>
      appendEvents(tx, [
        {
          type: TYPE,
          entity: "run",
          entityUid,
          entityVersion,
          actor: { type: "user", uid: "u" },
          requestId: "r",
          payload: { name: `${entityUid}${entityVersion}` },
        },
      ]),
    );
  await consumer.drain();
});

test("events list shows each dead-lettered event with its reason, and the payload as JSON", async () => {
  expect(applied).toEqual(["b.1"]);
  const { code, printed } = await admin("events list", env);
  expect(code).toBe(0);
  const [header, first, second] = printed.split("\n").map((line) => line.trim().split(/\s{2,}/));
  expect(header).toEqual(["SERVICE", "CONSUMER", "SOURCE", "POSITION", "TYPE", "ENTITY", "REPLAYS", "SINCE", "REASON"]);
  const since = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect(first).toEqual(["metrics", "facts", "orchestrator", "1", TYPE, "run a", "0", since, expect.anything()]);
  expect(first!.at(-1)).toBe("Error: the price is missing");
  expect(second!.at(-1)).toBe("waits behind a dead-lettered event of the same entity");
  const json = await admin("events list metrics --json", env);
  expect((JSON.parse(json.printed) as { event: { payload: unknown } }[]).map(({ event }) => event.payload)).toEqual([
    { name: "a1" },
    { name: "a2" },
  ]);
  expect(await admin("events list gateway", env)).toMatchObject({ code: 0, printed: "No event is dead-lettered." });
  expect(await admin("events list nothing", env)).toMatchObject({
    code: 2,
    errors: expect.stringContaining('Unknown service "nothing". Services: factories, gateway'),
  });
});

test("events replay has the running consumer apply the events in order", async () => {
  consumer.start();
  try {
    expect(await admin("events replay metrics", env)).toMatchObject({
      code: 1,
      printed: expect.stringContaining("0 events applied, 2 remain."),
    });
    broken.clear();
    expect(await admin("events replay", env)).toMatchObject({ code: 0, printed: "2 events applied, 0 remain." });
    expect(applied).toEqual(["b.1", "a.1", "a.2"]);
    expect(await admin("events replay", env)).toMatchObject({ code: 0, printed: "No event is dead-lettered." });
  } finally {
    await consumer.stop();
  }
});

test("events replay reports a service that does not run, which replays when it starts", async () => {
  expect(await admin("events replay --wait 0", env)).toMatchObject({
    code: 1,
    errors: "metrics has not replayed its events yet. If it does not run, it replays when it starts.",
  });
  broken.clear();
  await consumer.drain();
  expect(applied).toEqual(["b.1", "a.1", "a.2"]);
  expect(await admin("events replay --wait soon", env)).toMatchObject({
    code: 2,
    errors: "--wait must be a whole number of seconds (got soon).",
  });
});

test("events discard deletes one event, and the later ones of its entity are applied", async () => {
  const { code, printed } = await admin("events discard metrics facts orchestrator 1", env);
  expect([code, JSON.parse(printed)]).toMatchObject([0, { entityUid: "a", entityVersion: 1, payload: { name: "a1" } }]);
  broken.clear();
  await consumer.drain();
  expect(applied).toEqual(["b.1", "a.2"]);
  expect(await admin("events discard metrics facts orchestrator 1", env)).toMatchObject({
    code: 1,
    errors: "No event of orchestrator at position 1 is dead-lettered by facts: see events list.",
  });
  expect(await admin("events discard metrics facts orchestrator first", env)).toMatchObject({
    code: 2,
    errors: "POSITION must be a positive whole number (got first).",
  });
});
