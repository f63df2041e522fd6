import type { ScopeAgent, ScopeMode } from "./scorer.ts";

/** The members of a run that decide whether it is scored. */
export type ScoredRun = {
  readonly uid: string;
  readonly ownerType: string;
  readonly ownerUid: string;
  readonly factoryUid: string;
  /** The agent that executed the run; "" if none. */
  readonly agentUid: string;
  readonly ancestorAgentUids: readonly string[];
  readonly source: string;
  readonly state: string;
  readonly version: number;
  readonly conversationUid: string;
  readonly hasConversation: boolean;
  readonly title: string;
};

export const JUDGE_SOURCE = "RUN_SCORER";
export const TRIAL_SOURCE = "BENCHMARK_TRIAL";
const TERMINAL = ["SUCCEEDED", "FAILED", "BLOCKED", "ERROR", "CANCELLED"];

export type Ineligible = { readonly reason: string; readonly message: string };

/**
 * Returns the reason why a run of a factory cannot be scored by any scorer, or undefined if it can. A BLOCKED run
 * counts as ended, because it waits for a person.
 */
export function whyNotScoreable(
  run: ScoredRun,
  factory: { readonly uid: string; readonly teamUid: string },
): Ineligible | undefined {
  const not = (message: string): Ineligible => ({ reason: "run_not_scoreable", message: `Run ${run.uid} ${message}.` });
  if (run.ownerType !== "team" || run.ownerUid !== factory.teamUid) return not("does not belong to the factory's team");
  if (run.factoryUid !== factory.uid) return not("does not belong to this factory");
  if (run.source === JUDGE_SOURCE) return not("is a scoring job");
  if (run.agentUid === "") return not("was not executed by an agent of the factory");
  if (!run.hasConversation) return not("has no conversation");
  if (!TERMINAL.includes(run.state)) return not(`has not ended (it is ${run.state})`);
  return undefined;
}

/**
 * Returns whether a run is in the scope of a scorer: its agent is selected, or an ancestor's agent is selected with
 * descendants.
 */
export function isInScope(
  run: ScoredRun,
  { scopeMode, agents }: { readonly scopeMode: ScopeMode; readonly agents: readonly ScopeAgent[] },
): boolean {
  if (scopeMode === "all_agents") return true;
  return agents.some(
    ({ agentUid, includeDescendants }) =>
      agentUid === run.agentUid || (includeDescendants && run.ancestorAgentUids.includes(agentUid)),
  );
}
