import type { Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import type { JsonObject } from "@millwright/json";
import type { Suite, TaskContent } from "../domain/suite.ts";
import type { FactoryView } from "./scope.ts";

/** The members of an agent that suites and launches need. */
export type SuiteAgent = {
  readonly uid: string;
  readonly name: string;
  readonly factoryUid: string;
  /** Names of the agents that it can delegate to. */
  readonly siblings: readonly string[];
  /** Configuration layers of the agent, most specific first. */
  readonly layers: readonly AgentLayer[];
};

export type AgentLayer = {
  readonly source: string;
  readonly uid: string;
  readonly version: number;
  readonly config: JsonObject;
};

export type ReferenceDeps = {
  agents: {
    /** Returns an agent. Errors: agent_not_found (absent, disabled or not visible). */
    get(caller: Caller, teamUid: string, agentUid: string): Promise<SuiteAgent>;
    /** Returns the agent of a factory that has the name. Errors: agent_not_found. */
    findByName(caller: Caller, teamUid: string, factoryUid: string, name: string): Promise<SuiteAgent>;
  };
  /** Checks that the caller can see a run. Errors: run_not_found (absent or not visible to the caller). */
  runs: { requireVisible(caller: Caller, runUid: string): Promise<void> };
};

/**
 * Returns the agent of a suite, which must belong to the factory and, if `factoryAgentType` is given, have this name.
 *
 * Errors: agent_not_found · agent_type_mismatch (invalid_argument).
 */
export async function findSuiteAgent(
  deps: ReferenceDeps,
  caller: Caller,
  factory: FactoryView,
  agentUid: string,
  factoryAgentType: string | undefined,
): Promise<SuiteAgent> {
  const agent = await deps.agents.get(caller, factory.teamUid, agentUid);
  if (agent.factoryUid !== factory.uid) throw notFound("agent");
  if (factoryAgentType !== undefined && factoryAgentType !== agent.name) {
    throw invalidArgument(
      "agent_type_mismatch",
      `factory_agent_type is ${JSON.stringify(factoryAgentType)}, but agent_uid names the agent ${JSON.stringify(agent.name)}.`,
    );
  }
  return agent;
}

/**
 * Checks that the caller can see the source runs of tasks. A task may retain the source run of its earlier version,
 * which `earlierOf` returns. Errors: run_not_found.
 */
export async function requireTaskReferences<T extends TaskContent>(
  deps: ReferenceDeps,
  caller: Caller,
  tasks: readonly T[],
  earlierOf: (task: T) => TaskContent | undefined = () => undefined,
): Promise<void> {
  const changed = tasks.filter((task) => task.sourceRunUid !== earlierOf(task)?.sourceRunUid);
  const runUids = new Set(changed.flatMap(({ sourceRunUid }) => sourceRunUid ?? []));
  for (const runUid of runUids) await deps.runs.requireVisible(caller, runUid);
}

/** Returns the sorted uids of the agents that the suite's agent can delegate to; empty if it no longer exists. */
export async function spawnableDescendants(
  deps: Pick<ReferenceDeps, "agents">,
  caller: Caller,
  suite: Suite,
): Promise<string[]> {
  const agent = await deps.agents.get(caller, suite.teamUid, suite.agentUid).catch(noneIfNotFound);
  const found = await Promise.all(
    (agent?.siblings ?? []).map((name) =>
      deps.agents.findByName(caller, suite.teamUid, suite.factoryUid, name).catch(noneIfNotFound),
    ),
  );
  return found.flatMap((sibling) => sibling?.uid ?? []).toSorted();
}

function noneIfNotFound(error: unknown): undefined {
  if ((error as { kind?: unknown }).kind !== "not_found") throw error;
}
