/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterAll, expect } from "@jest/globals";
import { eventually, natsServer, needs, type NatsServer } from "@millwright/testing";
import { connect as connectNats, type NatsConnection } from "nats";
import { Platform } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { script, startRun, succeeded } from "./support/runs.ts";

let nats: NatsServer;
let platform: Platform;
let api: Client;
const connections: NatsConnection[] = [];
afterAll(async () => {
  for (const connection of connections) await connection.close();
  await platform?.remove();
  await nats?.close();
});

/** Subscribes to finished runs. Returns the array that receives their ids. */
async function finishedRuns(): Promise<string[]> {
  const connection = await connectNats({ servers: nats.url, reconnect: false });
  connections.push(connection);
  const received: string[] = [];
  connection.subscribe("millwright.run.finished.v1", {
    callback: (_error, message) => void received.push(message.json<{ entityUid: string }>().entityUid),
  });
  await connection.flush();
  return received;
}
async function aRun(): Promise<string> {
  const run = await startRun(api, script("say: Hello."));
  await succeeded(api, run);
  return run;
}

needs(
  "nats-server",
  "a standalone platform publishes its events to NATS, works without it, and publishes the missed events later",
  async () => {
    nats = await natsServer();
    platform = await Platform.start({ env: { MILLWRIGHT_NATS_URL: nats.url } });
    api = await connect(platform);
    const first = await finishedRuns();
    const before = await aRun();
    await eventually(() => expect(first).toEqual([before]));

    await nats.stop({ wipe: true });
    const without = await aRun();
    await nats.start();
    const second = await finishedRuns();
    const after = await aRun();
    await eventually(() => expect(new Set(second)).toEqual(new Set([without, after])));
  },
);
