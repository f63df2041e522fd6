import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import { identity } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import { as, newUid, type AgentUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { Activation } from "../domain/apply.ts";
import type { Factory } from "../domain/factory.ts";
import { foremanMissing, type Foreman } from "../domain/dispatch.ts";
import { callerFor } from "./definition-owners.ts";

/** Returns a client for agents, profiles and secrets. */
export function identityClient(transport: Transport, signer: CallerSigner) {
  const agents = clientFor(identity.IdentityService, transport, { signer });
  return {
    /** Errors: foreman_missing (conflict). */
    async findForeman(caller: Caller, factory: Factory): Promise<Foreman> {
      const self = serviceCaller(signer.service, caller.requestId, caller.principal, caller.teams);
      const found = await agents
        .findForeman({ teamUid: factory.teamUid, factoryUid: factory.uid }, call(self))
        .catch((error: unknown) => {
          throw isMissing(error) ? foremanMissing(error) : error;
        });
      return { agentUid: found.agentUid, agentName: found.agentName };
    },

    /** Returns the uids of the team's users with these addresses; unknown addresses are left out. */
    async findTeammates(caller: Caller, teamUid: string, emails: readonly string[]): Promise<string[]> {
      const { profiles } = await agents.getProfiles({ teamUid, emails: [...emails] }, call(caller));
      return profiles.map(({ uid }) => uid);
    },

    /** Returns the current value of a team's managed secret; undefined if absent. */
    async secretOf(teamUid: string, name: string): Promise<string | undefined> {
      const { values } = await agents.resolveSecrets(
        { teamUid, optionalNames: [name] },
        call(serviceCaller(signer.service, newUid())),
      );
      return values[name];
    },

    async foremanOf(activation: Activation): Promise<AgentUid | undefined> {
      const { uid, teamUid } = activation.factory;
      const found = await agents
        .findForeman({ teamUid, factoryUid: uid }, call(callerFor(signer.service, activation)))
        .catch((error: unknown) => {
          if (isMissing(error)) return undefined;
          throw error;
        });
      return found && as<AgentUid>(found.agentUid);
    },
  };
}

const isMissing = (error: unknown): boolean =>
  isDomainError(error) && (error.reason === "foreman_missing" || error.kind === "not_found");
