import { getEventListeners } from "node:events";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { readFeedState, Relay } from "@millwright/events";
import type { EventLog, NatsLink } from "@millwright/events";
import { eventually, memoryLog } from "@millwright/testing";
import type { TestDatabase } from "@millwright/testing";
import { eventDatabase } from "./setup.ts";

let t: TestDatabase;
beforeEach(async () => void (t = await eventDatabase()));
afterEach(() => t.close());

test("an idle relay does not accumulate listeners", async () => {
  const signals: AbortSignal[] = [];
  const quiet: Pick<EventLog, "read"> = {
    read: async ({ signal }) => {
      if (signal) signals.push(signal);
      return { logUid: "0199a000-0000-7000-8000-000000000001", head: 0, through: 0, events: [] };
    },
  };
  const connected: Pick<NatsLink, "connection"> = {
    connection: async () => ({}) as Awaited<ReturnType<NatsLink["connection"]>>,
  };
  const relay = new Relay({
    eventLog: quiet as EventLog,
    database: t.database,
    nats: connected as NatsLink,
    log: memoryLog(),
  });
  relay.start();
  await eventually(() => expect(signals.length).toBeGreaterThan(5));
  expect(getEventListeners(signals[0] as AbortSignal, "abort").length).toBeLessThan(3);
  await relay.stop();
});

test("the lag of a relay that has never reached NATS is measured", async () => {
  expect((await readFeedState(t.database.sql)).relayLag).toBeUndefined();
  const unreachable: Pick<NatsLink, "connection"> = { connection: () => new Promise(() => {}) };
  const relay = new Relay({
    eventLog: {} as EventLog,
    database: t.database,
    nats: unreachable as NatsLink,
    log: memoryLog(),
  });
  relay.start();
  await t.database.sql.query("UPDATE stream.event_meta SET head = 3");
  await eventually(async () => expect((await readFeedState(t.database.sql)).relayLag).toBe(3));
  await relay.stop();
});
