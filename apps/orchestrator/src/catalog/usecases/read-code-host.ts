import { requireServiceCaller, serviceCaller, type Caller } from "@millwright/caller";
import { FORGE_RESOURCES, type ForgeResponse, type ForgeReader, type LocalHost } from "@millwright/code-host";
import { DomainError, invalidArgument, isDomainError } from "@millwright/errors";
import { newUid, type TeamUid } from "@millwright/ids";
import type { Clock } from "@millwright/clock";
import { codeHostFor, repositoryNamed, type CodeHost } from "../domain/code-host.ts";
import type { PullRequest } from "../domain/pull-request.ts";
import { readToken, type OpenCodeHosts, type ResolveSecrets } from "./open-code-host.ts";

export type ReadCodeHostDeps = {
  readonly codeHosts: { list(teams: readonly TeamUid[]): Promise<readonly CodeHost[]> };
  readonly identity: ResolveSecrets;
  readonly readForge: (connection: Pick<CodeHost, "kind" | "baseUrl">, token: string) => ForgeReader;
  readonly openCodeHost: OpenCodeHosts;
  readonly findPullRequest: (uid: string) => Promise<PullRequest | undefined>;
  readonly clock: Clock;
};

export type CodeHostRead = {
  readonly teamUid: TeamUid;
  readonly kind: string;
  readonly repository: string;
  readonly resource: string;
  readonly number: number;
  readonly changedSince: Date | undefined;
  readonly branch: string;
  readonly headRepository: string;
  readonly url: string;
  readonly page: string;
  readonly etag: string;
};

export type CodeHostResponse = ForgeResponse & { readonly codeHostUid: string };

/**
 * Reads one page from the code host that serves a repository, with the credential of its connection. Other services
 * have no such credential.
 *
 * Errors: service_caller_required (permission_denied) · code_host_not_connected · those of `forgeReader`.
 */
export async function readCodeHost(
  deps: ReadCodeHostDeps,
  caller: Caller,
  read: CodeHostRead,
): Promise<CodeHostResponse> {
  requireServiceCaller(caller);
  const resource = FORGE_RESOURCES.find((known) => known === read.resource);
  if (!resource)
    throw invalidArgument(
      "resource_invalid",
      `resource must be one of ${FORGE_RESOURCES.join(", ")} (got "${read.resource}").`,
    );
  const connections = (await deps.codeHosts.list([read.teamUid])).filter(({ kind }) => kind === read.kind);
  if (read.kind === "local") return readLocal(deps, connections, read);
  const repository = repositoryNamed(read.repository);
  const connection = codeHostFor(connections, repository.owner);
  if (!connection) throw notConnected(read);
  const token = await readToken(deps.identity, serviceCaller("orchestrator", newUid()), connection);
  const response = await deps.readForge(
    connection,
    token,
  )({
    ...read,
    resource,
    repository: read.headRepository === "" ? repository : repositoryNamed(read.headRepository),
  });
  return { ...response, codeHostUid: connection.uid };
}

/**
 * Returns whether the pull request of a local repository is merged: its head is part of the base branch. The ETag
 * consists of the commits of both branches. The outcome is not_found if the repository or the base branch no longer
 * exists.
 */
async function readLocal(
  deps: ReadCodeHostDeps,
  connections: readonly CodeHost[],
  read: CodeHostRead,
): Promise<CodeHostResponse> {
  const pull = await deps.findPullRequest(read.url.split("/").at(-1) ?? "");
  const connection = connections.find(({ uid }) => uid === pull?.codeHostUid);
  if (!pull || !connection) throw notConnected(read);
  const opened = deps.openCodeHost(connection, "");
  if (opened.kind !== "local") throw notConnected(read);
  const common = {
    codeHostUid: connection.uid,
    body: undefined,
    nextPage: "",
    answeredAt: deps.clock.now(),
    rateLimit: undefined,
    retryAfterSeconds: 0,
  };
  try {
    const body = await localPullRequest(opened.host, pull);
    if (!body) return { ...common, outcome: "not_found", etag: "" };
    const etag = `"${body.base_sha} ${pull.headSha}"`;
    return etag === read.etag
      ? { ...common, outcome: "not_modified", etag }
      : { ...common, outcome: "found", etag, body };
  } catch (error) {
    if (isDomainError(error) && error.kind === "not_found") return { ...common, outcome: "not_found", etag: "" };
    throw error;
  }
}

async function localPullRequest(
  host: LocalHost,
  { owner, repo, number, url, title, baseBranch, headSha, createdAt }: PullRequest,
): Promise<{ base_sha: string; [member: string]: unknown } | undefined> {
  const repository = { owner, repo };
  const baseSha = await host.branchSha(repository, baseBranch);
  if (baseSha === undefined) return undefined;
  const mergedAt = await host.mergeTime(repository, baseBranch, headSha);
  // The time of a fast-forward merge is that of the head commit, which may be older than the pull request.
  const time = mergedAt && (mergedAt > createdAt ? mergedAt : createdAt);
  return {
    number,
    url,
    title,
    repository: `${owner}/${repo}`,
    created_at: createdAt.toISOString(),
    merged_at: time?.toISOString() ?? null,
    base_sha: baseSha,
  };
}

const notConnected = ({ kind, repository }: CodeHostRead): DomainError =>
  new DomainError({
    kind: "invalid_argument",
    reason: "code_host_not_connected",
    code: "integration_not_configured",
    message: `The team has no connection of kind "${kind}" that serves ${repository}.`,
  });
