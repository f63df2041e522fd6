import { notFound } from "@millwright/errors";
import type { PinnedRepository } from "../../runs/domain/pinned-repository.ts";

export type GetRunRepositoriesDeps = {
  /** Returns commits regardless of the caller; undefined if there is no such run. */
  readonly findStartingCommits: (runUid: string) => Promise<readonly PinnedRepository[] | undefined>;
};

/** Returns the repositories of a run at the commits from which it started. Errors: run_not_found. */
export async function getRunRepositories(
  deps: GetRunRepositoriesDeps,
  runUid: string,
): Promise<readonly PinnedRepository[]> {
  const repositories = await deps.findStartingCommits(runUid);
  if (!repositories) throw notFound("run");
  return repositories;
}
