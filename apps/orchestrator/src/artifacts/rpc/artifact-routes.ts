import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { orchestrator } from "@millwright/contracts";
import { callerOf } from "@millwright/rpc";
import {
  getArtifact,
  updateArtifact,
  type GetArtifactDeps,
  type UpdateArtifactDeps,
} from "../usecases/get-artifact.ts";
import { getPullRequest, type GetPullRequestDeps, type PullRequestPage } from "../usecases/get-pull-request.ts";
import { getScreenshotUrl, type GetScreenshotUrlDeps } from "../usecases/get-screenshot.ts";
import { artifactMessage } from "../../runs/rpc/run-messages.ts";

export type ArtifactRoutesDeps = GetArtifactDeps & UpdateArtifactDeps & GetPullRequestDeps & GetScreenshotUrlDeps;

/** Registers ArtifactService: artifacts, pull requests and screenshots of runs. */
export function artifactRoutes(router: ConnectRouter, deps: ArtifactRoutesDeps): void {
  router.service(orchestrator.ArtifactService, {
    async getArtifact({ artifactUid, anonymous }, context) {
      const { artifact, data, source, downloadUrl } = await getArtifact(
        deps,
        callerOf(context),
        artifactUid,
        anonymous,
      );
      return {
        artifact: artifactMessage(artifact),
        data: data as JsonObject,
        downloadUrl,
        source: source ? { ...source, pullRequestUrls: [...source.pullRequestUrls] } : undefined,
      };
    },
    async updateArtifact({ artifactUid, public: isPublic }, context) {
      return { artifact: artifactMessage(await updateArtifact(deps, callerOf(context), artifactUid, isPublic)) };
    },
    async getScreenshotUrl({ conversationUid, screenshotUid }, context) {
      return { url: await getScreenshotUrl(deps, callerOf(context), conversationUid, screenshotUid) };
    },
    async getPullRequest({ pullRequestUid }, context) {
      return pullRequestMessage(await getPullRequest(deps, callerOf(context), pullRequestUid));
    },
  });
}

const pullRequestMessage = ({ pullRequest, diff, files }: PullRequestPage): orchestrator.GetPullRequestResponse =>
  create(orchestrator.GetPullRequestResponseSchema, {
    uid: pullRequest.uid,
    runUid: pullRequest.runUid,
    owner: pullRequest.owner,
    repo: pullRequest.repo,
    number: pullRequest.number,
    url: pullRequest.url,
    title: pullRequest.title,
    body: pullRequest.body,
    headBranch: pullRequest.headBranch,
    baseBranch: pullRequest.baseBranch,
    headSha: pullRequest.headSha,
    status: pullRequest.status,
    createdAt: timestampFromDate(pullRequest.createdAt),
    diff,
    files: files.map((file) => ({ ...file })),
  });
