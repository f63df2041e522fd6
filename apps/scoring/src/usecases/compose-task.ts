import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import { SUITE_LIMITS } from "../domain/suite-rules.ts";
import type { RepoRef, TaskContent } from "../domain/suite.ts";
import type { FactoryView, ScopeDeps } from "./scope.ts";
import { findBenchmarkFactory } from "./suite-scope.ts";

/** A run that a task can be created from. */
export type SourceRun = {
  readonly uid: string;
  readonly title: string;
  readonly prompt: string;
  /** "" if there is none. */
  readonly factoryUid: string;
  /** "" if there is none. */
  readonly environmentUid: string;
  /** Repositories at the commits that the run started from; empty before its first clone. */
  readonly repositories: readonly { readonly owner: string; readonly repo: string; readonly commit: string }[];
};

export type ComposeTaskDeps = ScopeDeps & {
  runs: { get(caller: Caller, runUid: string): Promise<SourceRun> };
  environments: EnvironmentReader;
};

/** Returns the public configuration of an environment, or undefined if the caller cannot see it. */
export type EnvironmentReader = { environment(caller: Caller, uid: string): Promise<JsonObject | undefined> };

/**
 * Returns a draft of a task from a run of the factory: its prompt, its title and its repositories at the commits that
 * it started from. Stores nothing; the caller adds the success criteria. Errors: factory_not_found · not_authorized ·
 * run_not_found (absent, not visible or of another factory).
 */
export async function composeTask(
  deps: ComposeTaskDeps,
  caller: Caller,
  ref: { factoryUid: string; runUid: string },
): Promise<TaskContent> {
  const factory = await findBenchmarkFactory(deps, caller, ref.factoryUid, "factory.view");
  if (!isUuid(ref.runUid)) throw notFound("run");
  const run = await deps.runs.get(caller, ref.runUid.toLowerCase());
  if (run.factoryUid !== factory.uid) throw notFound("run");
  const environment =
    run.environmentUid === "" ? undefined : await deps.environments.environment(caller, run.environmentUid);
  return {
    title: run.title.trim().slice(0, SUITE_LIMITS.title),
    prompt: run.prompt.trim().slice(0, SUITE_LIMITS.prompt),
    successCriteria: "",
    sourceRunUid: run.uid,
    startingRepoRefs: (run.repositories.length > 0
      ? pinnedRefs(run, factory)
      : repositoriesOf(environment, factory)
    ).slice(0, SUITE_LIMITS.refs),
    tags: [],
    labels: {},
    rule: null,
  };
}

const pinnedRefs = ({ repositories }: SourceRun, factory: FactoryView): RepoRef[] =>
  repositories.map(({ owner, repo, commit }) => ({ code_forge: forgeOf(factory, owner), owner, repo, ref: commit }));

/** Returns the code forge that the factory's repositories have for an owner. */
const forgeOf = ({ repositories }: FactoryView, owner: string): string =>
  repositories.find((repository) => repository.owner === owner)?.codeForge.toLowerCase() || "github";

/**
 * Returns the repositories of a run at their default branches: those of its environment if it has any, otherwise those
 * of its factory.
 */
export function repositoriesOf(environment: JsonObject | undefined, factory: FactoryView): RepoRef[] {
  const own = (environment?.["github_repos"] ?? []) as unknown as readonly { owner: string; repo: string }[];
  const chosen = own.length > 0 ? own : factory.repositories;
  return chosen.map(({ owner, repo }) => ({ code_forge: forgeOf(factory, owner), owner, repo, ref: "" }));
}
