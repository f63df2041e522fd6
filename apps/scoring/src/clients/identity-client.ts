import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import { identity } from "@millwright/contracts";
import { isDomainError, notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** Agents, as scorers need them. */
export function identityClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(identity.IdentityService, transport, { signer });
  return {
    /** Errors: agent_not_found, for an agent that is not one of the factory's or is disabled. */
    async requireAgents(
      caller: Caller,
      factory: { uid: string; teamUid: string },
      agentUids: readonly string[],
    ): Promise<void> {
      const agents = await Promise.all(
        agentUids.map((agentUid) => client.resolveAgent({ teamUid: factory.teamUid, agentUid }, call(caller))),
      );
      if (agents.some(({ factoryUid }) => factoryUid !== factory.uid)) throw notFound("agent");
    },

    /** Uids of agents of a factory by name; absent and disabled ones have none. Asked in this service's own name. */
    async uidsOf(
      factory: { uid: string; teamUid: string },
      names: readonly string[],
    ): Promise<ReadonlyMap<string, string>> {
      const self = call(serviceCaller(signer.service, newUid()));
      const found = await Promise.all(
        names.map(async (agentName): Promise<[string, string][]> => {
          try {
            const { agentUid } = await client.resolveAgent(
              { teamUid: factory.teamUid, factoryUid: factory.uid, agentName },
              self,
            );
            return [[agentName, agentUid]];
          } catch (error) {
            if (isDomainError(error) && error.reason === "agent_not_found") return [];
            throw error;
          }
        }),
      );
      return new Map(found.flat());
    },

    /** Names by uid; deleted agents have none. */
    async names(caller: Caller, teamUid: string, agentUids: readonly string[]): Promise<ReadonlyMap<string, string>> {
      if (agentUids.length === 0) return new Map();
      const { profiles } = await client.getProfiles({ teamUid, uids: [...agentUids] }, call(caller));
      return new Map(profiles.map(({ uid, displayName }) => [uid, displayName ?? ""]));
    },
  };
}
