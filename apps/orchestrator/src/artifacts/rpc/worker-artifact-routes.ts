import { bearerOf } from "../../leases/rpc/worker-routes.ts";
import { requireLease } from "../../leases/store/lease-store.ts";
import { authenticateSession, type AuthenticateSessionDeps } from "../../leases/usecases/authenticate-session.ts";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { SignedUpload } from "@millwright/blobs";
import type { worker } from "@millwright/contracts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import { commitArtifact, type CommitArtifactDeps } from "../usecases/commit-artifact.ts";
import { createArtifact, type CreateArtifactDeps } from "../usecases/create-artifact.ts";
import { openPullRequest, type OpenPullRequestDeps } from "../usecases/open-pull-request.ts";
import { putSnapshot, type PutSnapshotDeps } from "../usecases/put-snapshot.ts";
import { putTranscript, type PutTranscriptDeps } from "../../conversations/usecases/put-transcript.ts";
import { MODEL_ACCESS, type ModelAccess } from "../../catalog/domain/usage.ts";
import { reportUsage, type ReportUsageDeps } from "../../budgets/usecases/report-usage.ts";
import { reserveCost, type ReserveCostDeps } from "../../budgets/usecases/reserve-cost.ts";

type Bound = CommitArtifactDeps &
  CreateArtifactDeps &
  OpenPullRequestDeps &
  PutSnapshotDeps &
  PutTranscriptDeps &
  ReportUsageDeps &
  ReserveCostDeps;

export type WorkerArtifactDeps = Omit<Bound, "requireLease"> & AuthenticateSessionDeps;

/** The methods of WorkerService with which an attempt stores what it has produced. */
export type WorkerArtifactMethods = Pick<
  ServiceImpl<typeof worker.WorkerService>,
  | "openPullRequest"
  | "reserveCost"
  | "reportUsage"
  | "createArtifact"
  | "commitArtifact"
  | "putSnapshot"
  | "putTranscript"
>;

/** Returns the methods of WorkerService with which an attempt stores artifacts, pull requests, usage and files. */
export function workerArtifactMethods(deps: WorkerArtifactDeps): WorkerArtifactMethods {
  /** With `orStopping`, an execution that is being stopped may still store its workspace and transcript. */
  const within = async (context: HandlerContext, options: { orStopping?: boolean } = {}): Promise<Bound> => {
    const { uid: sessionUid } = await authenticateSession(deps, bearerOf(context));
    return {
      ...deps,
      requireLease: (tx, executionId, attempt) => requireLease(tx, executionId, attempt, { sessionUid, ...options }),
    };
  };
  return {
    async openPullRequest(request, context) {
      const { owner, repo, headBranch, headSha, baseBranch, title, body } = request;
      return openPullRequest(await within(context), {
        lease: leaseOf(request),
        owner,
        repo,
        headBranch,
        headSha,
        baseBranch,
        title,
        body,
      });
    },
    async reserveCost(request, context) {
      const { modelId, inputTokens, outputTokens } = request;
      return reserveCost(await within(context), {
        lease: leaseOf(request),
        modelId,
        inputTokens: Number(inputTokens),
        outputTokens: Number(outputTokens),
      });
    },
    async reportUsage(request, context) {
      const { callId, modelId, usage, estimated: isEstimated } = request;
      const access = accessOf(request.access);
      const { isBudgeted } = await reportUsage(await within(context), {
        lease: leaseOf(request),
        callId,
        modelId,
        tokens: usage ? tokensOf(usage) : {},
        statedMicros: usage?.costMicros,
        isEstimated,
        access,
      });
      return { costLimited: isBudgeted };
    },
    async createArtifact(request, context) {
      const { clientArtifactId, artifactType: type, data, content, sizeBytes, sha256 } = request;
      const { artifactUid, upload } = await createArtifact(await within(context), {
        lease: leaseOf(request),
        clientArtifactId,
        isPublic: request.public,
        report: { type, data: data ?? {}, sizeBytes: Number(sizeBytes), sha256, content },
      });
      return { artifactUid, ...uploadMessage(upload) };
    },
    async commitArtifact(request, context) {
      await commitArtifact(await within(context), leaseOf(request), request.artifactUid);
      return {};
    },
    async putSnapshot(request, context) {
      const { sizeBytes, sha256 } = request;
      const { snapshotKey, upload } = await putSnapshot(await within(context, { orStopping: true }), leaseOf(request), {
        size: Number(sizeBytes),
        sha256,
      });
      return { snapshotKey, ...uploadMessage(upload) };
    },
    async putTranscript(request, context) {
      const { sizeBytes, sha256 } = request;
      const { upload } = await putTranscript(await within(context, { orStopping: true }), leaseOf(request), {
        size: Number(sizeBytes),
        sha256,
      });
      return uploadMessage(upload);
    },
  };
}

const leaseOf = ({ executionId, attempt }: { executionId: bigint; attempt: number }): LeaseRef => ({
  executionId: Number(executionId),
  attempt,
});

const uploadMessage = (upload: SignedUpload | undefined) =>
  upload ? { uploadUrl: upload.url, uploadHeaders: upload.headers } : {};

/** Returns `undefined` for an unknown value, which a worker of another version may send. */
const accessOf = (access: string): ModelAccess | undefined => MODEL_ACCESS.find((known) => known === access);

/** Leaves absent counts out: they were not measured. */
const tokensOf = ({ inputTokens, outputTokens, inputCacheReadTokens, inputCacheWriteTokens }: worker.TokenUsage) => ({
  ...count("input", inputTokens),
  ...count("output", outputTokens),
  ...count("cacheRead", inputCacheReadTokens),
  ...count("cacheWrite", inputCacheWriteTokens),
});

const count = <K extends string>(name: K, value: bigint | undefined): { [P in K]?: number } =>
  value === undefined ? {} : ({ [name]: Number(value) } as { [P in K]: number });
