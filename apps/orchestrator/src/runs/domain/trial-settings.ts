import type { FrozenRepository, PinnedRepository } from "./pinned-repository.ts";
import type { JsonObject } from "./run.ts";

/** The source of the runs of benchmark trials. */
export const TRIAL_SOURCE = "BENCHMARK_TRIAL";

/**
 * The settings that every descendant of a benchmark trial inherits. The keys are in snake case, because they are part
 * of a frozen configuration.
 */
export type TrialSettings = {
  readonly pinned_repositories: readonly PinnedRepository[];
  /** AgentConfigSnapshot by agent uid; overrides the agent's own configuration. */
  readonly agent_overrides: Readonly<Record<string, JsonObject>>;
};

/** Returns the repositories; those that the trial pins are at their pinned commits. */
export function pinnedTo(
  settings: TrialSettings | undefined,
  repositories: readonly FrozenRepository[],
): readonly FrozenRepository[] {
  const commits = new Map((settings?.pinned_repositories ?? []).map((pinned) => [keyOf(pinned), pinned.commit]));
  return repositories.map((repository) => {
    const commit = commits.get(keyOf(repository));
    return commit === undefined ? repository : { ...repository, commit };
  });
}

const keyOf = ({ owner, repo }: { readonly owner: string; readonly repo: string }): string =>
  `${owner}/${repo}`.toLowerCase();
