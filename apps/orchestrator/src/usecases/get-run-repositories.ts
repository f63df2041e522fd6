import { notFound } from "@millwright/errors";
import type { PinnedRepository } from "../domain/pinned-repository.ts";

export type GetRunRepositoriesDeps = {
  /** Regardless of the caller; undefined when there is no such run. */
  readonly findStartingCommits: (runUid: string) => Promise<readonly PinnedRepository[] | undefined>;
};

/** Returns the repositories that a run has worked on, at the commits that it started from. Errors: run_not_found. */
export async function getRunRepositories(
  deps: GetRunRepositoriesDeps,
  runUid: string,
): Promise<readonly PinnedRepository[]> {
  const repositories = await deps.findStartingCommits(runUid);
  if (!repositories) throw notFound("run");
  return repositories;
}
