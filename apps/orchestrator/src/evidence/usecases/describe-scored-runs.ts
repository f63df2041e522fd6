import { invalidArgument } from "@millwright/errors";
import type { AgentUid } from "@millwright/ids";
import type { ScoredRun } from "../domain/scored-run.ts";
import type { ModelUsage } from "../../catalog/domain/usage.ts";

/** The part of a scored run that one database row contains. */
export type StoredRun = Omit<ScoredRun, "usage" | "ancestorAgentUids">;

export type ScoredRunDetailsDeps = {
  readonly ancestorAgents: (runUids: readonly string[]) => Promise<ReadonlyMap<string, readonly AgentUid[]>>;
  readonly usageOfRuns: (runUids: readonly string[]) => Promise<ReadonlyMap<string, readonly ModelUsage[]>>;
};

export type DescribeScoredRunsDeps = ScoredRunDetailsDeps & {
  /** Returns runs regardless of the caller; unknown uids are left out. */
  readonly listScoredRuns: (runUids: readonly string[]) => Promise<readonly StoredRun[]>;
};

const RUNS_MAX = 500;

/**
 * Returns the data that decides whether and how runs are scored, with three queries for any number of runs. Unknown
 * runs are left out.
 *
 * Errors: runs_count (invalid_argument).
 */
export async function describeScoredRuns(
  deps: DescribeScoredRunsDeps,
  runUids: readonly string[],
): Promise<ScoredRun[]> {
  if (runUids.length > RUNS_MAX)
    throw invalidArgument("runs_count", `run_uids must have at most ${RUNS_MAX} entries (got ${runUids.length}).`);
  return withDetails(deps, await deps.listScoredRuns(runUids));
}

/** Adds the agents of the ancestors, and the usage of model calls. */
export async function withDetails(deps: ScoredRunDetailsDeps, runs: readonly StoredRun[]): Promise<ScoredRun[]> {
  const children = runs.filter(({ run }) => run.parentRunUid !== undefined).map(({ run }) => run.uid);
  const metered = runs.filter(({ run }) => run.hasUsage).map(({ run }) => run.uid);
  const [ancestors, usage] = await Promise.all([deps.ancestorAgents(children), deps.usageOfRuns(metered)]);
  return runs.map((stored) => ({
    ...stored,
    ancestorAgentUids: ancestors.get(stored.run.uid) ?? [],
    usage: usage.get(stored.run.uid) ?? [],
  }));
}
