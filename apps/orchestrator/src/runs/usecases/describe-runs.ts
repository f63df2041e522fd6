import type { Artifact } from "../domain/run-artifact.ts";
import type { Run } from "../domain/run.ts";
import type { ModelUsage } from "../../catalog/domain/usage.ts";

/** A run with its artifacts and model usage. */
export type RunView = {
  readonly run: Run;
  /** Oldest first. */
  readonly artifacts: readonly Artifact[];
  readonly usage: readonly ModelUsage[];
};

export type DescribeRunsDeps = {
  readonly artifactsOfRuns: (runUids: readonly string[]) => Promise<readonly Artifact[]>;
  readonly usageOfRuns: (runUids: readonly string[]) => Promise<ReadonlyMap<string, readonly ModelUsage[]>>;
};

/**
 * Adds artifacts and model usage to runs, with one query per kind for any number of runs, and no query if no run has
 * any.
 */
export async function describeRuns(deps: DescribeRunsDeps, runs: readonly Run[]): Promise<RunView[]> {
  const uids = (subset: readonly Run[]): string[] => [...new Set(subset.map((run) => run.uid))];
  const [artifacts, usage] = await Promise.all([
    deps.artifactsOfRuns(uids(runs.filter(({ hasArtifacts }) => hasArtifacts))),
    deps.usageOfRuns(uids(runs.filter(({ hasUsage }) => hasUsage))),
  ]);
  return runs.map((run) => ({
    run,
    artifacts: artifacts.filter(({ runUid }) => runUid === run.uid),
    usage: usage.get(run.uid) ?? [],
  }));
}
