import { DomainError, notFound } from "@millwright/errors";
import type { Agent } from "../domain/agent-identity.ts";
import { agentLayer, type ConfigLayer } from "../domain/config-layers.ts";
import { factoryAgents, getAgent } from "../store/agent-store.ts";
import { findLayer } from "../store/definition-store.ts";
import type { Tx } from "../store/identity-db.ts";
import { presentSecrets } from "../store/secret-store.ts";
import { getTeamLayer, type TeamLayer } from "../store/team-store.ts";

export type AgentQuery = {
  teamUid: string;
  agentUid?: string | undefined;
  factoryUid?: string | undefined;
  agentName?: string | undefined;
  askedSecrets?: readonly string[];
};

export type ResolvedAgent = {
  agent: Agent | undefined;
  definitionVersion: number;
  /** Configuration layers, most specific first. */
  layers: ConfigLayer[];
  siblings: string[];
  team: TeamLayer;
  /** Names among `askedSecrets` for which the team has a secret. */
  teamSecrets: readonly string[];
};

/**
 * Returns the configuration layers of an agent: its own, its factory's, its team's. The agent is given by uid, or by
 * name within a factory; without either, only the team's layer is returned.
 *
 * Errors: team_not_found · agent_not_found (also if disabled).
 */
export async function resolveAgent(tx: Tx, query: AgentQuery): Promise<ResolvedAgent> {
  const { teamUid, askedSecrets = [] } = query;
  const [team, teamSecrets] = await Promise.all([
    getTeamLayer(tx, teamUid),
    askedSecrets.length > 0 ? presentSecrets(tx.sql, teamUid, askedSecrets) : [],
  ]);
  const agent = await findAgent(tx, query);
  const factoryUid = agent?.factoryUid ?? query.factoryUid;
  const factory = factoryUid ? await findLayer(tx.sql, factoryUid) : undefined;
  const ownFactory = factory?.teamUid === query.teamUid ? factory : undefined;
  const siblings = agent?.factoryUid ? await factoryAgents(tx.sql, query.teamUid, agent.factoryUid) : [];
  return {
    agent,
    definitionVersion: ownFactory?.version ?? 0,
    layers: [
      ...(agent ? [agentLayer(agent)] : []),
      ...(ownFactory && factoryUid
        ? [{ source: "factory" as const, uid: factoryUid, version: ownFactory.version, config: ownFactory.config }]
        : []),
      { source: "team", uid: team.uid, version: team.version, config: team.config },
    ],
    siblings: siblings.filter((each) => each.uid !== agent?.uid && each.enabled).map(({ name }) => name),
    team,
    teamSecrets,
  };
}

async function findAgent(
  { sql }: Tx,
  { teamUid, agentUid, factoryUid, agentName }: AgentQuery,
): Promise<Agent | undefined> {
  if (!agentUid && !agentName) return undefined;
  const agent = agentUid
    ? await getAgent(sql, [teamUid], agentUid)
    : factoryUid
      ? (await factoryAgents(sql, teamUid, factoryUid)).find(({ name }) => name === agentName)
      : undefined;
  if (!agent?.enabled) throw notFound("agent");
  return agent;
}

/** Returns the agent that receives a factory's work. Errors: foreman_missing (conflict, not retryable). */
export async function findForeman(
  { sql }: Tx,
  input: { teamUid: string; factoryUid: string },
): Promise<{ agent: Agent; definitionVersion: number }> {
  const agents = await factoryAgents(sql, input.teamUid, input.factoryUid);
  const agent = agents.find(({ agentType, enabled }) => agentType === "FOREMAN" && enabled);
  if (!agent)
    throw new DomainError({
      kind: "conflict",
      reason: "foreman_missing",
      message: "The factory has no foreman. Apply a definition with an agent of type FOREMAN first.",
    });
  const layer = await findLayer(sql, input.factoryUid);
  return { agent, definitionVersion: layer?.version ?? 0 };
}
