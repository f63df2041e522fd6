import { create } from "@bufbuild/protobuf";
import { isMember, type Caller } from "@millwright/caller";
import { MODEL_SECRETS, orchestrator } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import { resolvedMessage } from "./identity-messages.ts";
import type { Tx } from "../store/identity-db.ts";
import { resolveAgent } from "../usecases/resolve-agent.ts";

export type KnownAgentQuery = { readonly teamUid: string; readonly agentUid: string | undefined };

/**
 * Returns an agent of a team, or without `agentUid` the configuration of the team, to be sent with a request for a run:
 * the orchestrator, which needs both, does not have to call back. Returns undefined if there is no such agent, or the
 * caller is not a member; then the orchestrator resolves the agent and returns the error.
 */
export async function knownAgent(
  tx: Tx,
  caller: Caller,
  { teamUid, agentUid }: KnownAgentQuery,
): Promise<orchestrator.KnownAgent | undefined> {
  if (!isMember(caller, teamUid) || (agentUid !== undefined && !isUuid(agentUid))) return undefined;
  const askedSecrets = [...MODEL_SECRETS];
  try {
    const agent = resolvedMessage(await resolveAgent(tx, { teamUid, agentUid, askedSecrets }));
    const query = { teamUid, ...omitUndefined({ agentUid }), askedSecrets };
    return create(orchestrator.KnownAgentSchema, { query, agent });
  } catch (error) {
    if (isDomainError(error)) return undefined;
    throw error;
  }
}
