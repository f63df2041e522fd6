import { invalidArgument } from "@millwright/errors";

/** A repository of a run. `commit`: the commit that the run starts at; absent: the head of the default branch. */
export type FrozenRepository = {
  readonly owner: string;
  readonly repo: string;
  readonly code_host_uid?: string;
  readonly commit?: string;
};

/** A repository at one commit. */
export type PinnedRepository = { readonly owner: string; readonly repo: string; readonly commit: string };

const REPOSITORIES_MAX = 100;

/** Returns whether a text is a full commit id (SHA-1 or SHA-256). */
export const isCommitId = (text: string): boolean => /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(text);

/**
 * Throws `pinned_repository_invalid` (invalid_argument) if a repository has no name or no full commit id, or occurs
 * twice.
 */
export function checkPinned(repositories: readonly PinnedRepository[]): void {
  if (repositories.length > REPOSITORIES_MAX)
    throw invalid(`At most ${REPOSITORIES_MAX} repositories can be pinned (got ${repositories.length}).`);
  const names = repositories.map(({ owner, repo }) => `${owner}/${repo}`.toLowerCase());
  for (const [index, { owner, repo, commit }] of repositories.entries()) {
    if (owner === "" || repo === "") throw invalid("A pinned repository must have an owner and a name.");
    if (!isCommitId(commit))
      throw invalid(`${owner}/${repo} must be pinned to a full commit id (got "${commit.slice(0, 80)}").`);
    if (names.indexOf(names[index]!) !== index) throw invalid(`${owner}/${repo} is pinned more than once.`);
  }
}

const invalid = (message: string) => invalidArgument("pinned_repository_invalid", message);
