import type { ConnectRouter } from "@connectrpc/connect";
import { isMember } from "@millwright/caller";
import { factories } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices, callerOf } from "@millwright/rpc";

export type FakeFactory = { uid: string; teamUid: string; repositories: { owner: string; repo: string }[] };

/** Factories in memory. */
export class FakeFactories {
  static readonly allow = allowServices(factories.FactoryService, { getFactory: ["metrics"] });
  readonly factories = new Map<string, FakeFactory>();

  /** Adds a factory of a team. */
  aFactory(factory: Partial<FakeFactory> & Pick<FakeFactory, "teamUid">): FakeFactory {
    const made = { uid: newUid(), repositories: [], ...factory };
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
  }

  /** Forgets everything. */
  clear(): void {
    this.factories.clear();
  }
}
