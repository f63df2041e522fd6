import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import { identity } from "@millwright/contracts";
import { isDomainError, notFound } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** Returns the client of the identity service for scorers. */
export function identityClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(identity.IdentityService, transport, { signer });
  return {
    /** Checks that all agents belong to the factory and are enabled. Errors: agent_not_found. */
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

    /**
     * Returns the uids of a factory's agents by name, without absent and disabled agents. Calls identity in the name of
     * this service.
     */
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

    /** Returns display names by uid, without deleted agents. */
    async names(caller: Caller, teamUid: string, agentUids: readonly string[]): Promise<ReadonlyMap<string, string>> {
      if (agentUids.length === 0) return new Map();
      const { profiles } = await client.getProfiles({ teamUid, uids: [...agentUids] }, call(caller));
      return new Map(profiles.map(({ uid, displayName }) => [uid, displayName ?? ""]));
    },
  };
}
