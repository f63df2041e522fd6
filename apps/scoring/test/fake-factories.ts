import type { JsonObject } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { isMember } from "@millwright/caller";
import { events, factories } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices, callerOf } from "@millwright/rpc";
import { serveFeed, type FakeEvent } from "@millwright/testing";

export type FakeFactory = {
  uid: string;
  teamUid: string;
  management: string;
  scorerDefaults?: JsonObject;
  scoringDefaultModel?: string;
};

/** In-memory implementation of the factories service. */
export class FakeFactories {
  static readonly allow = {
    ...allowServices(factories.FactoryService, { getFactory: ["scoring"] }),
    ...allowServices(events.EventFeedService, { read: ["scoring"] }),
  };
  readonly factories = new Map<string, FakeFactory>();
  readonly feed: FakeEvent[] = [];

  /** Adds a factory of a team. */
  aFactory(factory: Partial<FakeFactory> & Pick<FakeFactory, "teamUid">): FakeFactory {
    const made = { uid: newUid(), management: "live", ...factory };
    this.factories.set(made.uid, made);
    return made;
  }

  routes(router: ConnectRouter): void {
    router.service(factories.FactoryService, {
      getFactory: async ({ uid }, context) => {
        const found = this.factories.get(uid);
        if (!found || !isMember(callerOf(context), found.teamUid)) throw notFound("factory");
        return { factory: found };
      },
    });
    serveFeed(router, "0199a000-0000-7000-8000-000000000002", this.feed);
  }

  /** Resets all state. */
  clear(): void {
    this.factories.clear();
    this.feed.length = 0;
  }
}
