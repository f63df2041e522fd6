/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterEach, beforeEach, expect } from "@jest/globals";
import { connect, Events } from "nats";
import { NatsLink, type ReplicaNotifier } from "@millwright/events";
import { eventually, memoryLog, natsServer, needs, type NatsServer } from "@millwright/testing";

let server: NatsServer | undefined;
let closers: (() => Promise<unknown>)[];
beforeEach(() => void (closers = []));
afterEach(async () => {
  for (const close of closers) await close();
});

/** A replica's notifier, with the topics it received. */
async function aReplica(
  service = "orchestrator",
): Promise<{ notifier: ReplicaNotifier; received: string[]; link: NatsLink }> {
  if (!server) {
    const started = (server = await natsServer());
    closers.push(async () => {
      server = undefined;
      await started.close();
    });
  }
  const link = NatsLink.open(server.url, "test", memoryLog());
  closers.unshift(() => link.close());
  const notifier = link.replicaNotifier(service);
  const received: string[] = [];
  notifier.subscribe((topic) => received.push(topic));
  await (await link.connection()).flush();
  return { notifier, received, link };
}

needs("nats-server", "a notification reaches the other replicas of the same service only", async () => {
  const [one, two, three, other] = [await aReplica(), await aReplica(), await aReplica(), await aReplica("factories")];
  one.notifier.notify(["work", "run:a", "work"]);
  await eventually(() =>
    expect([two.received, three.received]).toEqual([
      ["work", "run:a"],
      ["work", "run:a"],
    ]),
  );
  two.notifier.notify(["run:b"]);
  await eventually(() => expect([one.received, three.received]).toEqual([["run:b"], ["work", "run:a", "run:b"]]));
  expect(other.received).toEqual([]);
});

needs(
  "nats-server",
  "nothing is buffered while the server is away, and notifications resume when it is back",
  async () => {
    const [one, two] = [await aReplica(), await aReplica()];
    const statuses = (await one.link.connection()).status();
    await server!.stop({ wipe: true });
    for await (const { type } of statuses) if (type === Events.Disconnect) break;
    one.notifier.notify(["lost"]);
    await server!.start();
    await eventually(() => {
      one.notifier.notify(["back"]);
      expect(two.received).toContain("back");
    });
    expect(two.received).not.toContain("lost");
  },
);

needs("nats-server", "a message in an unknown format is ignored", async () => {
  const one = await aReplica();
  const nats = await connect({ servers: server!.url });
  for (const text of ["", "no json", "null", "7", '{"from":"x"}', '{"topics":"work"}'])
    nats.publish("millwright-wakeup.orchestrator", text);
  nats.publish("millwright-wakeup.orchestrator", '{"from":"x","topics":["work"]}');
  await eventually(() => expect(one.received).toEqual(["work"]));
  await nats.close();
});
