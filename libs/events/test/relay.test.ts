/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterEach, beforeEach, describe, expect } from "@jest/globals";
import { connect } from "nats";
import type { NatsConnection } from "nats";
import { NatsLink, Relay, STREAM } from "@millwright/events";
import type { EventLog } from "@millwright/events";
import { eventually, memoryLog, natsServer, needs } from "@millwright/testing";
import type { NatsServer, TestDatabase } from "@millwright/testing";
import { aLog, append, eventDatabase } from "./setup.ts";

let t: TestDatabase;
let eventLog: EventLog;
let closers: (() => Promise<unknown>)[];
beforeEach(async () => {
  t = await eventDatabase();
  eventLog = aLog(t.database);
  eventLog.start();
  closers = [() => eventLog.stop(), () => t.close()];
});
afterEach(async () => {
  for (const close of closers) await close();
});

async function aServer(): Promise<NatsServer> {
  const server = await natsServer();
  closers.push(() => server.close());
  return server;
}

function aLink(server: NatsServer): NatsLink {
  const link = NatsLink.open(server.url, "test", memoryLog());
  closers.unshift(() => link.close());
  return link;
}

function aRelay(server: NatsServer): Relay {
  const relay = new Relay({ eventLog, database: t.database, nats: aLink(server), log: memoryLog() });
  closers.unshift(() => relay.stop());
  relay.start();
  return relay;
}

/** The entities in the stream, in order. */
async function published(server: NatsServer): Promise<string[]> {
  let nats: NatsConnection | undefined;
  try {
    nats = await connect({ servers: server.url, reconnect: false });
    const { state } = await (await nats.jetstreamManager()).streams.info(STREAM);
    const stream = await nats.jetstream().streams.get(STREAM);
    const messages = [];
    for (let seq = state.first_seq; seq <= state.last_seq; seq++) messages.push(await stream.getMessage({ seq }));
    return messages.map((m) => m.json<{ entityUid: string }>().entityUid);
  } finally {
    await nats?.close();
  }
}

describe("the relay", () => {
  needs(
    "nats-server",
    "publishes each event once, also when two replicas relay and one restarts from the beginning",
    async () => {
      const server = await aServer();
      aRelay(server);
      aRelay(server);
      await append(t.database, { entityUid: "a" }, { entityUid: "b" });
      await eventually(async () => expect(await published(server)).toEqual(["a", "b"]));
      await t.database.sql.query("UPDATE stream.feed_cursors SET position = 0");
      await append(t.database, { entityUid: "c" });
      await eventually(async () => expect(await published(server)).toEqual(["a", "b", "c"]));
    },
  );

  needs("nats-server", "starts without a server and later publishes the events of that time", async () => {
    const server = await aServer();
    await server.stop();
    aRelay(server);
    await append(t.database, { entityUid: "a" });
    await server.start();
    await eventually(async () => expect(await published(server)).toEqual(["a"]));
  });

  needs("nats-server", "continues after the server lost its data", async () => {
    const server = await aServer();
    aRelay(server);
    await append(t.database, { entityUid: "a" });
    await eventually(async () => expect(await published(server)).toEqual(["a"]));
    await server.stop({ wipe: true });
    await server.start();
    await append(t.database, { entityUid: "b" });
    await eventually(async () => expect(await published(server)).toEqual(["b"]));
  });

  needs("nats-server", "wakes the subscribers of a type in other processes, each until it unsubscribes", async () => {
    const server = await aServer();
    const received: string[] = [];
    const link = aLink(server);
    const wakeups = link.wakeups();
    const created = "millwright.run.created.v1";
    const unsubscribeFirst = wakeups.subscribe([created, "millwright.run.finished.v1"], (type) =>
      received.push(`first ${type}`),
    );
    const unsubscribeSecond = wakeups.subscribe([created], (type) => received.push(`second ${type}`));
    wakeups.subscribe(["millwright.other.v1"], (type) => received.push(`other ${type}`));
    const nats = await link.connection();
    await nats.flush();
    aRelay(server);
    await append(t.database, { entityUid: "a" });
    await eventually(() => expect(received).toEqual([`first ${created}`, `second ${created}`]));
    unsubscribeFirst();
    unsubscribeFirst(); // has no effect on the other subscriber
    await append(t.database, { entityUid: "b" });
    await eventually(() => expect(received).toEqual([`first ${created}`, `second ${created}`, `second ${created}`]));
    const messages = nats.stats().inMsgs;
    unsubscribeSecond();
    await append(t.database, { entityUid: "c" });
    await eventually(async () => expect(await published(server)).toEqual(["a", "b", "c"]));
    await nats.flush();
    expect([received.length, nats.stats().inMsgs]).toEqual([3, messages]);
  });
});
