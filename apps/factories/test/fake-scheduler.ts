import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { events } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { allowServices } from "@millwright/rpc";

/** The feed of due schedule slots. */
export class FakeScheduler {
  static readonly allow = allowServices(events.EventFeedService, { read: ["factories"] });
  readonly #feed: { uid: string; teamUid: string; payload: JsonObject }[] = [];

  routes(router: ConnectRouter): void {
    router.service(events.EventFeedService, {
      read: async ({ after, limit }) => ({
        logUid: "0199a000-0000-7000-8000-000000000002",
        head: BigInt(this.#feed.length),
        events: this.#feed.slice(Number(after), Number(after) + limit).map((event, index) => ({
          ...event,
          position: after + BigInt(index) + 1n,
          type: "millwright.schedule_trigger.fired.v1",
          entity: "schedule_trigger",
          entityUid: newUid(),
          entityVersion: 1n,
          actorType: "service",
          actorUid: "scheduler",
          requestId: "r-1",
          occurredAt: timestampFromDate(new Date("2026-11-20T10:00:00.000Z")),
        })),
      }),
    });
  }

  /** Appends an event and returns its uid. */
  fire(teamUid: string, payload: JsonObject): string {
    const uid = newUid();
    this.#feed.push({ uid, teamUid, payload: { missed_count: 0, slot_at: "2026-11-20T10:00:00.000Z", ...payload } });
    return uid;
  }
}
