import { serviceCaller, type Caller } from "@millwright/caller";
import { DomainError, invalidArgument, isDomainError } from "@millwright/errors";
import { newUid, type TeamUid } from "@millwright/ids";
import { codeHostFor, PUBLIC_GITHUB, type CodeHost } from "../../catalog/domain/code-host.ts";
import type { PinnedRepository } from "../../runs/domain/pinned-repository.ts";
import type { OpenCodeHosts } from "../../catalog/usecases/open-code-host.ts";

export type ResolveCommitsDeps = {
  readonly codeHosts: { list(teams: readonly TeamUid[]): Promise<readonly CodeHost[]> };
  readonly identity: {
    resolveSecrets(
      caller: Caller,
      teamUid: string,
      names: readonly string[],
      optionalNames: readonly string[],
    ): Promise<Readonly<Record<string, string>>>;
  };
  readonly openCodeHost: OpenCodeHosts;
};

/** A repository and a ref: a branch, a tag or a full commit id. "" means the default branch. */
export type RepositoryAtRef = { readonly owner: string; readonly repo: string; readonly ref: string };

const REPOSITORIES_MAX = 100;
const CONCURRENCY = 6;

/**
 * Returns the current commits of refs of a team's repositories, in the order of the request, read with the team's
 * connections. A repository that no connection serves is read as a public repository of GitHub.
 *
 * Errors: repositories_count, ref_invalid (invalid_argument) · repository_not_found, ref_not_found (not_found) · those
 * of the code host.
 */
export async function resolveCommits(
  deps: ResolveCommitsDeps,
  teamUid: string,
  repositories: readonly RepositoryAtRef[],
): Promise<PinnedRepository[]> {
  if (repositories.length > REPOSITORIES_MAX)
    throw invalidArgument(
      "repositories_count",
      `repositories must have at most ${REPOSITORIES_MAX} entries (got ${repositories.length}).`,
    );
  const hosts = await deps.codeHosts.list([teamUid as TeamUid]);
  const secrets = [...new Set(repositories.flatMap(({ owner }) => codeHostFor(hosts, owner)?.secretName || []))];
  const values = await deps.identity.resolveSecrets(serviceCaller("orchestrator", newUid()), teamUid, [], secrets);
  const resolved = new Map<RepositoryAtRef, PinnedRepository>();
  const remaining = [...repositories];
  const work = async (): Promise<void> => {
    for (let next = remaining.shift(); next; next = remaining.shift())
      resolved.set(next, await resolveCommit(deps, hosts, values, next));
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return repositories.map((repository) => resolved.get(repository)!);
}

async function resolveCommit(
  deps: ResolveCommitsDeps,
  hosts: readonly CodeHost[],
  secrets: Readonly<Record<string, string>>,
  { owner, repo, ref }: RepositoryAtRef,
): Promise<PinnedRepository> {
  const connection = codeHostFor(hosts, owner) ?? PUBLIC_GITHUB;
  const { host } = deps.openCodeHost(connection, secrets[connection.secretName] ?? "");
  try {
    // Always read: a code host does not distinguish a repository that is absent from a ref that is absent.
    const defaultBranch = await host.defaultBranch({ owner, repo });
    const commit = await host.commitOf({ owner, repo }, ref || defaultBranch);
    if (commit === undefined)
      throw absent("ref_not_found", `${owner}/${repo} has no branch, tag or commit "${ref || defaultBranch}".`, {
        owner,
        repo,
        ref,
      });
    return { owner, repo, commit };
  } catch (error) {
    if (!isDomainError(error)) throw error;
    if (error.reason === "repository_not_found")
      throw absent(
        "repository_not_found",
        `The repository ${owner}/${repo} does not exist, or the team's connection cannot read it.`,
        { owner, repo },
      );
    if (error.reason === "branch_invalid")
      throw invalidArgument("ref_invalid", `"${ref}" is not a valid branch, tag or commit id of ${owner}/${repo}.`, {
        owner,
        repo,
      });
    throw error;
  }
}

const absent = (reason: string, message: string, metadata: Record<string, string>): DomainError =>
  new DomainError({ kind: "not_found", reason, message, metadata });
