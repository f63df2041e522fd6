import { MODEL_SECRETS, type orchestrator } from "@millwright/contracts";
import { resolvedAgentOf } from "../../catalog/clients/identity-client.ts";
import type { KnownAgent } from "../../catalog/domain/resolved-agent.ts";

/**
 * Returns the agent that the gateway has resolved, or undefined if it is absent, or the gateway did not look up all
 * secrets that this version needs.
 */
export function knownAgentOf(message: orchestrator.KnownAgent | undefined): KnownAgent | undefined {
  const { query, agent } = message ?? {};
  if (!query || !agent || !MODEL_SECRETS.every((name) => query.askedSecrets.includes(name))) return undefined;
  const { teamUid, agentUid, factoryUid, agentName } = query;
  return {
    query: {
      teamUid,
      agentUid: agentUid || undefined,
      factoryUid: factoryUid || undefined,
      agentName: agentName || undefined,
    },
    agent: resolvedAgentOf(agent),
  };
}
