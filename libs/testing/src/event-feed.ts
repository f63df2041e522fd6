import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { events } from "@millwright/contracts";
import { newUid } from "@millwright/ids";

export type FakeEvent = {
  type: string;
  entityUid: string;
  entityVersion?: number;
  teamUid?: string;
  occurredAt?: Date;
  cause?: string;
  payload?: JsonObject;
};

/** Serves the events of a list as the event feed of a service; `logUid` is the id of its log. */
export function serveFeed(router: ConnectRouter, logUid: string, list: readonly FakeEvent[]): void {
  router.service(events.EventFeedService, {
    read: async ({ after, limit }) => ({
      logUid,
      head: BigInt(list.length),
      events: list
        .slice(Number(after), Number(after) + limit)
        .map(({ occurredAt = new Date("2026-11-20T10:00:00.000Z"), entityVersion = 1, ...event }, index) => ({
          payload: {},
          ...event,
          uid: newUid(),
          position: after + BigInt(index) + 1n,
          entity: event.type.split(".")[1]!,
          entityVersion: BigInt(entityVersion),
          actorType: "user",
          actorUid: "u-1",
          requestId: "r-1",
          occurredAt: timestampFromDate(occurredAt),
        })),
    }),
  });
}
