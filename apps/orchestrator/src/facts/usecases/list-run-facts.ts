import { invalidArgument } from "@millwright/errors";
import {
  distinctPullRequests,
  type ComputeInterval,
  type ModelCallFacts,
  type ProducedPullRequest,
  type RunFacts,
  type RunSnapshot,
} from "../domain/run-facts.ts";

type OfRuns<T> = (runUids: readonly string[]) => Promise<ReadonlyMap<string, T>>;

export type ListRunFactsDeps = {
  /** Returns snapshots regardless of the caller; unknown and malformed uids are left out. */
  readonly runSnapshots: (runUids: readonly string[]) => Promise<readonly RunSnapshot[]>;
  readonly modelCallsOfRuns: OfRuns<readonly ModelCallFacts[]>;
  readonly computeIntervalsOfRuns: OfRuns<readonly ComputeInterval[]>;
  readonly producedPullRequests: OfRuns<readonly ProducedPullRequest[]>;
  readonly personFollowUpsOfRuns: OfRuns<number>;
};

const RUNS_MAX = 200;

/**
 * Returns complete snapshots of runs, with one statement per kind of fact. The runs are read first, so the usage and
 * the outputs of a run are at least as new as its version.
 *
 * Errors: runs_count (invalid_argument).
 */
export async function listRunFacts(deps: ListRunFactsDeps, runUids: readonly string[]): Promise<RunFacts[]> {
  if (runUids.length > RUNS_MAX)
    throw invalidArgument("runs_count", `run_uids must have at most ${RUNS_MAX} entries (got ${runUids.length}).`);
  const runs = await deps.runSnapshots(runUids);
  if (runs.length === 0) return [];
  const uids = runs.map(({ uid }) => uid);
  const [calls, intervals, pulls, followUps] = await Promise.all([
    deps.modelCallsOfRuns(uids),
    deps.computeIntervalsOfRuns(uids),
    deps.producedPullRequests(uids),
    deps.personFollowUpsOfRuns(uids),
  ]);
  return runs.map((run) => ({
    ...run,
    modelCalls: calls.get(run.uid) ?? [],
    computeIntervals: intervals.get(run.uid) ?? [],
    pullRequests: distinctPullRequests(pulls.get(run.uid) ?? []),
    personFollowUps: followUps.get(run.uid) ?? 0,
  }));
}
