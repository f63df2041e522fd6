import type { Caller } from "@millwright/caller";
import { isDomainError, notFound } from "@millwright/errors";
import type { TeamUid } from "@millwright/ids";
import type { CodeHost } from "../../catalog/domain/code-host.ts";
import type { PullRequest } from "../../catalog/domain/pull-request.ts";
import type { Run } from "../../runs/domain/run.ts";
import type { OpenCodeHosts } from "../../catalog/usecases/open-code-host.ts";

export type GetPullRequestDeps = {
  readonly findPullRequest: (uid: string) => Promise<PullRequest | undefined>;
  readonly findVisibleRun: (caller: Caller, uid: string) => Promise<Run | undefined>;
  readonly codeHosts: { list(teams: readonly TeamUid[]): Promise<readonly CodeHost[]> };
  readonly openCodeHost: OpenCodeHosts;
};

export type FileChange = { readonly path: string; readonly additions: number; readonly deletions: number };
export type PullRequestPage = {
  readonly pullRequest: PullRequest;
  readonly diff: string;
  readonly files: readonly FileChange[];
};

/**
 * Returns a pull request with its diff. The diff of a local pull request starts at the commit where its branch left the
 * base. GitHub and GitLab show diffs themselves: for their pull requests, and if a local repository no longer exists,
 * the diff is empty.
 *
 * Errors: pull_request_not_found (absent, or its run is not visible).
 */
export async function getPullRequest(deps: GetPullRequestDeps, caller: Caller, uid: string): Promise<PullRequestPage> {
  const pullRequest = await deps.findPullRequest(uid);
  const run = pullRequest && (await deps.findVisibleRun(caller, pullRequest.runUid));
  if (!pullRequest || !run) throw notFound("pull_request");
  const connections =
    pullRequest.kind === "local" && run.owner.type === "team"
      ? await deps.codeHosts.list([run.owner.uid as TeamUid])
      : [];
  const connection = connections.find((codeHost) => codeHost.uid === pullRequest.codeHostUid);
  const opened = connection && deps.openCodeHost(connection, "");
  if (opened?.kind !== "local") return { pullRequest, diff: "", files: [] };
  try {
    const { owner, repo, baseSha, headSha } = pullRequest;
    const { text, files } = await opened.host.diff({ owner, repo }, baseSha, headSha);
    return {
      pullRequest,
      diff: text,
      files: files.map(({ path, additions, deletions }) => ({ path, additions, deletions })),
    };
  } catch (error) {
    if (isDomainError(error) && error.kind === "not_found") return { pullRequest, diff: "", files: [] };
    throw error;
  }
}
