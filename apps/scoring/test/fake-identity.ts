import type { JsonObject } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { isMember } from "@millwright/caller";
import { events, identity } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { allowServices, callerOf } from "@millwright/rpc";
import { serveFeed, type FakeEvent } from "@millwright/testing";

export type FakeAgent = {
  uid: string;
  teamUid: string;
  factoryUid: string;
  name: string;
  enabled: boolean;
  layers: { source: string; uid: string; version: bigint; config: JsonObject }[];
};

/** In-memory implementation of the identity service. */
export class FakeIdentity {
  static readonly allow = {
    ...allowServices(identity.IdentityService, { resolveAgent: ["scoring"], getProfiles: ["scoring"] }),
    ...allowServices(events.EventFeedService, { read: ["scoring"] }),
  };
  readonly agents = new Map<string, FakeAgent>();
  readonly feed: FakeEvent[] = [];

  /** Adds an agent of a factory. */
  anAgent(agent: Partial<FakeAgent> & Pick<FakeAgent, "teamUid" | "factoryUid">): FakeAgent {
    const made = { uid: newUid(), name: `agent-${this.agents.size + 1}`, enabled: true, layers: [], ...agent };
    this.agents.set(made.uid, made);
    return made;
  }

  routes(router: ConnectRouter): void {
    router.service(identity.IdentityService, {
      resolveAgent: async ({ teamUid, agentUid, factoryUid, agentName }, context) => {
        const caller = callerOf(context);
        if (caller.principal.type !== "service" && !isMember(caller, teamUid)) throw notFound("agent");
        const found = [...this.agents.values()].find((agent) =>
          agentUid ? agent.uid === agentUid : agent.factoryUid === factoryUid && agent.name === agentName,
        );
        if (!found?.enabled || found.teamUid !== teamUid) throw notFound("agent");
        const siblings = [...this.agents.values()].filter(
          (agent) => agent.factoryUid === found.factoryUid && agent.enabled && agent.uid !== found.uid,
        );
        return {
          agentUid: found.uid,
          agentName: found.name,
          factoryUid: found.factoryUid,
          siblingAgents: siblings.map(({ name }) => name),
          layers: found.layers,
        };
      },
      getProfiles: async ({ uids }) => ({
        profiles: uids.flatMap((uid) => {
          const agent = this.agents.get(uid);
          return agent ? [{ type: "service_account", uid, displayName: agent.name }] : [];
        }),
      }),
    });
    serveFeed(router, "0199a000-0000-7000-8000-000000000001", this.feed);
  }

  /** Resets all state. */
  clear(): void {
    this.agents.clear();
    this.feed.length = 0;
  }
}
