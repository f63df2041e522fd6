import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import { DEFAULT_QUEUE_SETTINGS, type ScopeSettings } from "../../catalog/domain/queue-settings.ts";
import {
  knownAgentFor,
  type KnownAgent,
  type ResolveAgentRequest,
  type ResolvedAgent,
} from "../../catalog/domain/resolved-agent.ts";
import type { ResolveRunRequest } from "../domain/resolved-run.ts";

export type FindAgentDeps = {
  readonly identity: { resolveAgent(caller: Caller, request: ResolveAgentRequest): Promise<ResolvedAgent> };
};

/**
 * Returns the current queue settings of the team, agent and factory whose capacity a run would use.
 *
 * Errors: agent_not_found.
 */
export const resolveQueueSettings = async (
  deps: FindAgentDeps,
  caller: Caller,
  request: Pick<ResolveRunRequest, "owner" | "agentUid">,
): Promise<ScopeSettings> => (await findAgent(deps, caller, { ...request, config: {} })).queueSettings;

const NO_AGENT: ResolvedAgent = {
  definitionVersion: 0,
  layers: [],
  siblingAgents: [],
  queueSettings: { team: DEFAULT_QUEUE_SETTINGS, agent: DEFAULT_QUEUE_SETTINGS, factory: DEFAULT_QUEUE_SETTINGS },
  teamSecrets: [],
};

export async function findAgent(
  deps: FindAgentDeps,
  caller: Caller,
  request: ResolveRunRequest,
  known?: KnownAgent,
): Promise<ResolvedAgent> {
  const { owner, agentUid, agentName, factoryUid } = request;
  if (owner.type === "user") {
    if (agentUid || agentName || factoryUid)
      throw invalidArgument(
        "agent_needs_team",
        "Only runs owned by a team can have agent_uid. Create the run in a team.",
      );
    return NO_AGENT;
  }
  const query = {
    teamUid: owner.uid,
    ...omitUndefined({ agentUid: agentUid || undefined, agentName: agentName || undefined, factoryUid }),
  };
  return knownAgentFor(query, known) ?? deps.identity.resolveAgent(caller, query);
}
