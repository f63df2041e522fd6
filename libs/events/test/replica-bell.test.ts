/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { afterEach, beforeEach, expect } from "@jest/globals";
import { connect, Events } from "nats";
import { NatsLink, type ReplicaBell } from "@millwright/events";
import { eventually, memoryLog, natsServer, needs, type NatsServer } from "@millwright/testing";

let server: NatsServer | undefined;
let closers: (() => Promise<unknown>)[];
beforeEach(() => void (closers = []));
afterEach(async () => {
  for (const close of closers) await close();
});

/** A replica's bell, with what it hears. */
async function aReplica(service = "orchestrator"): Promise<{ bell: ReplicaBell; heard: string[]; link: NatsLink }> {
  if (!server) {
    const started = (server = await natsServer());
    closers.push(async () => {
      server = undefined;
      await started.close();
    });
  }
  const link = NatsLink.open(server.url, "test", memoryLog());
  closers.unshift(() => link.close());
  const bell = link.replicaBell(service);
  const heard: string[] = [];
  bell.listen((topic) => heard.push(topic));
  await (await link.connection()).flush();
  return { bell, heard, link };
}

needs("nats-server", "what a replica rings is heard by the others of its service, and by nobody else", async () => {
  const [one, two, three, other] = [await aReplica(), await aReplica(), await aReplica(), await aReplica("factories")];
  one.bell.ring(["work", "run:a", "work"]);
  await eventually(() =>
    expect([two.heard, three.heard]).toEqual([
      ["work", "run:a"],
      ["work", "run:a"],
    ]),
  );
  two.bell.ring(["run:b"]);
  await eventually(() => expect([one.heard, three.heard]).toEqual([["run:b"], ["work", "run:a", "run:b"]]));
  expect(other.heard).toEqual([]);
});

needs("nats-server", "nothing is gathered while the server is away, and it rings again when it is back", async () => {
  const [one, two] = [await aReplica(), await aReplica()];
  const statuses = (await one.link.connection()).status();
  await server!.stop({ wipe: true });
  for await (const { type } of statuses) if (type === Events.Disconnect) break;
  one.bell.ring(["lost"]);
  await server!.start();
  await eventually(() => {
    one.bell.ring(["back"]);
    expect(two.heard).toContain("back");
  });
  expect(two.heard).not.toContain("lost");
});

needs("nats-server", "a message that is not understood is passed over", async () => {
  const one = await aReplica();
  const nats = await connect({ servers: server!.url });
  for (const text of ["", "no json", "null", "7", '{"from":"x"}', '{"topics":"work"}'])
    nats.publish("millwright-bell.orchestrator", text);
  nats.publish("millwright-bell.orchestrator", '{"from":"x","topics":["work"]}');
  await eventually(() => expect(one.heard).toEqual(["work"]));
  await nats.close();
});
