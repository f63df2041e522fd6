import { expect, test } from "@jest/globals";
import { createClient, createRouterTransport } from "@connectrpc/connect";
import { events } from "@millwright/contracts";
import { feedReader, serveEventFeed } from "@millwright/events";
import { aLog, anEvent, append, eventDatabase } from "./setup.ts";

test("a feed read over RPC equals the log read directly", async () => {
  const t = await eventDatabase();
  const log = aLog(t.database);
  const transport = createRouterTransport(
    (router) => void router.service(events.EventFeedService, serveEventFeed(log)),
  );
  const read = feedReader(createClient(events.EventFeedService, transport));
  await append(
    t.database,
    anEvent({
      teamUid: "0199a000-0000-7000-8000-000000000001",
      cause: "c",
      traceparent: `00-${"a".repeat(32)}-${"b".repeat(16)}-01`,
      payload: { text: "ü", n: 1.5, list: [null, true] },
    }),
    anEvent({ occurredAt: new Date("2026-01-02T03:04:05.678Z") }),
  );
  expect(await read({ after: 0, limit: 10 })).toEqual(await log.read({ after: 0, limit: 10 }));
  expect((await read({ after: 1, limit: 10 })).events).toHaveLength(1);
  await append(t.database, { type: "millwright.other.happened.v1" });
  for (const types of [["millwright.run.created.v1"], ["millwright.other.happened.v1"], ["millwright.nothing.v1"]]) {
    const range = { after: 0, limit: 10, types };
    expect(await read(range)).toEqual(await log.read(range));
  }
  await t.close();
});

test("a service that does not know types returns all events, and the page ends with the last one", async () => {
  const transport = createRouterTransport(
    (router) =>
      void router.service(events.EventFeedService, {
        read: () => ({ logUid: "l", head: 9n, events: [{ position: 4n }, { position: 5n }] }),
      }),
  );
  const read = feedReader(createClient(events.EventFeedService, transport));
  expect(await read({ after: 3, limit: 2, types: ["t"] })).toMatchObject({
    head: 9,
    through: 5,
    events: [{ position: 4 }, { position: 5 }],
  });
});
