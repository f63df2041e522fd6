import { findRunWithFrozen } from "../../runs/store/frozen-store.ts";
import type { ArtifactStore } from "../store/artifact-store.ts";
import type { PullRequestStore } from "../store/pull-request-store.ts";
import { appendRunEvents } from "../../runs/store/run-events-store.ts";
import type { Sql } from "@millwright/database";
import type { Diff, LocalHost, Repository } from "@millwright/code-host";
import { DomainError, invalidArgument, isDomainError, notFound } from "@millwright/errors";
import { newUid, type ArtifactUid, type TeamUid } from "@millwright/ids";
import { artifactCreated } from "../domain/artifact-event.ts";
import { codeHostFor, type CodeHost } from "../../catalog/domain/code-host.ts";
import {
  localPullRequestUrl,
  PULL_REQUEST_LIMITS,
  workBranchOf,
  type PullRequest,
} from "../../catalog/domain/pull-request.ts";
import type { FrozenConfig } from "../../runs/domain/resolved-run.ts";
import type { PullRequestSize } from "../../catalog/domain/pull-request.ts";
import type { Run } from "../../runs/domain/run.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { RequireLease } from "../../runs/usecases/require-lease.ts";
import type { Transaction } from "../../storage/store/transaction.ts";
import { actingFor } from "../../leases/usecases/prepare-assignment.ts";
import { readToken, type OpenCodeHosts, type ResolveSecrets } from "../../catalog/usecases/open-code-host.ts";

export type OpenPullRequestDeps = {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly pullRequests: Pick<PullRequestStore, "findByHead" | "nextLocalNumber" | "insert" | "moveHead">;
  readonly artifacts: Pick<ArtifactStore, "insert">;
  readonly codeHosts: { list(teams: readonly TeamUid[]): Promise<readonly CodeHost[]> };
  readonly identity: ResolveSecrets;
  readonly openCodeHost: OpenCodeHosts;
  readonly publicUrl: string;
};

export type OpenPullRequestInput = {
  readonly lease: LeaseRef;
  readonly owner: string;
  readonly repo: string;
  readonly headBranch: string;
  readonly headSha: string;
  /** The base branch. "" means the repository's default branch. */
  readonly baseBranch: string;
  readonly title: string;
  readonly body: string;
};

export type OpenedPullRequest = {
  readonly url: string;
  readonly number: number;
  readonly artifactUid: string;
  readonly adopted: boolean;
};

/** The code host's data of a pull request. A local pull request receives its number when its row is inserted. */
type Opened = Pick<PullRequest, "baseBranch" | "baseSha" | "status"> & {
  readonly number?: number;
  readonly url?: string;
  readonly adopted: boolean;
  /** Set for local pull requests only; code hosts report the size by webhooks. */
  readonly size?: PullRequestSize;
};

/**
 * Opens a pull request for the branch that a run has pushed, or adopts the existing one. There is one per run,
 * repository and branch, even if the request is repeated. One transaction writes the record, its artifact and the run's
 * event. The code host is called before that transaction; a repeated call adopts the pull request that exists there.
 * Agents have no credential for this.
 *
 * Errors: lease_lost · repository_not_of_run (not_found) · branch_not_of_run · pull_request_invalid ·
 * code_host_not_connected · head_branch_not_found · head_moved (conflict) · pull_request_refused (unsupported).
 */
export async function openPullRequest(
  deps: OpenPullRequestDeps,
  input: OpenPullRequestInput,
): Promise<OpenedPullRequest> {
  const { lease, owner, repo, headBranch, headSha } = input;
  const title = input.title.trim();
  if (title === "" || title.length > PULL_REQUEST_LIMITS.titleMax || input.body.length > PULL_REQUEST_LIMITS.bodyMax)
    throw invalidArgument(
      "pull_request_invalid",
      `A pull request must have a title of 1 to ${PULL_REQUEST_LIMITS.titleMax} characters and a body of at most ${PULL_REQUEST_LIMITS.bodyMax}.`,
    );
  const { run, frozen, existing } = await deps.transaction(async (tx) => {
    const { runUid } = await deps.requireLease(tx, lease.executionId, lease.attempt);
    const found = await findRunWithFrozen(tx, runUid);
    if (!found) throw notFound("run");
    return {
      ...found,
      existing: await deps.pullRequests.findByHead(tx, { runUid: found.run.uid, owner, repo, headBranch }),
    };
  });
  if (headBranch !== workBranchOf(run.uid))
    throw invalidArgument(
      "branch_not_of_run",
      `head_branch must be ${workBranchOf(run.uid)}, the branch of this run (got "${headBranch}").`,
    );
  if (existing) {
    const size =
      existing.kind === "local" && existing.headSha !== headSha
        ? await measureAgain(deps, run, frozen, existing, input)
        : undefined;
    return deps.transaction((tx) => adopt(deps, tx, existing, headSha, size));
  }
  const connection = await findConnection(deps, run, frozen, input);
  const opened = await openOnHost(deps, run, connection, { ...input, title });
  const uid = newUid();
  const artifactUid = newUid<ArtifactUid>();
  return deps.transaction(async (tx) => {
    await deps.requireLease(tx, lease.executionId, lease.attempt);
    // The lease check locks the run's row: the first of concurrent requests inserts the record, the others adopt it.
    const concurrent = await deps.pullRequests.findByHead(tx, { runUid: run.uid, owner, repo, headBranch });
    if (concurrent) return adopt(deps, tx, concurrent, headSha, opened.size);
    const number =
      opened.number ?? (await deps.pullRequests.nextLocalNumber(tx, { codeHostUid: connection.uid, owner, repo }));
    const url = opened.url ?? localPullRequestUrl(deps.publicUrl, run.uid, uid);
    const { baseBranch, baseSha, status } = opened;
    const pull = {
      uid,
      runUid: run.uid,
      codeHostUid: connection.uid,
      kind: connection.kind,
      owner,
      repo,
      number,
      url,
      title,
      body: input.body,
    };
    await deps.pullRequests.insert(
      tx,
      { ...pull, headBranch, headSha, baseBranch, baseSha, status, artifactUid },
      opened.size,
    );
    const data = { url, branch: headBranch };
    const artifact = { uid: artifactUid, type: "PULL_REQUEST" as const, data };
    await deps.artifacts.insert(tx, {
      ...artifact,
      runUid: run.uid,
      clientArtifactId: `pull-request:${uid}`,
      executionId: lease.executionId,
      isPublic: false,
      isCommitted: true,
    });
    await appendRunEvents(tx, run.uid, [artifactCreated({ ...artifact, data: { ...data, title } }, lease.executionId)]);
    return { url, number, artifactUid, adopted: opened.adopted };
  });
}

async function adopt(
  deps: OpenPullRequestDeps,
  tx: Sql,
  pull: PullRequest,
  headSha: string,
  size: PullRequestSize | undefined,
): Promise<OpenedPullRequest> {
  await deps.pullRequests.moveHead(tx, pull.uid, headSha, size);
  return { url: pull.url, number: pull.number, artifactUid: pull.artifactUid, adopted: true };
}

async function findConnection(
  deps: OpenPullRequestDeps,
  run: Run,
  frozen: FrozenConfig,
  { owner, repo }: OpenPullRequestInput,
): Promise<CodeHost> {
  const repository = frozen.repositories.find((candidate) => candidate.owner === owner && candidate.repo === repo);
  if (!repository)
    throw new DomainError({
      kind: "not_found",
      reason: "repository_not_of_run",
      message: "The run has no workspace of this repository.",
    });
  const connections = run.owner.type === "team" ? await deps.codeHosts.list([run.owner.uid as TeamUid]) : [];
  const connection = connections.find(({ uid }) => uid === repository.code_host_uid) ?? codeHostFor(connections, owner);
  if (connection) return connection;
  throw new DomainError({
    ...{ kind: "invalid_argument", reason: "code_host_not_connected", code: "integration_not_configured" },
    message: `No code host is connected for repositories of ${owner}.`,
  });
}

async function openOnHost(
  deps: OpenPullRequestDeps,
  run: Run,
  connection: CodeHost,
  input: OpenPullRequestInput,
): Promise<Opened> {
  const repository = { owner: input.owner, repo: input.repo };
  const { kind, host } = deps.openCodeHost(connection, await readToken(deps.identity, actingFor(run), connection));
  const base = input.baseBranch || (await host.defaultBranch(repository));
  if (kind !== "local") {
    const { headBranch: head, headSha, title, body } = input;
    const { number, url, state, adopted } = await host.ensurePullRequest({
      repository,
      head,
      headSha,
      base,
      title,
      body,
    });
    return { number, url, status: state, baseBranch: base, baseSha: "", adopted };
  }
  const sha = await host.branchSha(repository, input.headBranch);
  if (sha === undefined) throw notFound("head_branch");
  if (sha !== input.headSha)
    throw new DomainError({
      kind: "conflict",
      reason: "head_moved",
      message: `The branch is no longer at the given commit; it is at ${sha}. Fetch it and retry.`,
      metadata: { headSha: sha },
    });
  const diff = await host.diff(repository, base, input.headSha);
  if (diff.files.length === 0)
    throw new DomainError({
      kind: "unsupported",
      reason: "pull_request_refused",
      message: `There is no difference between ${base} and ${input.headBranch}.`,
    });
  return {
    status: "open",
    baseBranch: base,
    baseSha: diff.mergeBaseSha ?? diff.baseSha,
    adopted: false,
    size: await sizeOf(host, repository, diff),
  };
}

async function sizeOf(
  host: LocalHost,
  repository: Repository,
  { files, mergeBaseSha, baseSha, headSha }: Diff,
): Promise<PullRequestSize> {
  return {
    additions: files.reduce((sum, { additions }) => sum + additions, 0),
    deletions: files.reduce((sum, { deletions }) => sum + deletions, 0),
    changedFiles: files.length,
    numCommits: await host.countCommits(repository, mergeBaseSha ?? baseSha, headSha),
  };
}

/** Returns the new size, or undefined if the repository or the commit no longer exists. */
async function measureAgain(
  deps: OpenPullRequestDeps,
  run: Run,
  frozen: FrozenConfig,
  { owner, repo, baseSha }: PullRequest,
  input: OpenPullRequestInput,
): Promise<PullRequestSize | undefined> {
  try {
    const opened = deps.openCodeHost(await findConnection(deps, run, frozen, input), "");
    return opened.kind === "local"
      ? await sizeOf(opened.host, { owner, repo }, await opened.host.diff({ owner, repo }, baseSha, input.headSha))
      : undefined;
  } catch (error) {
    if (isDomainError(error)) return undefined;
    throw error;
  }
}
