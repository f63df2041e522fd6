import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { metrics } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { listPullRequests, type ListPullRequestsDeps } from "../usecases/list-pull-requests.ts";
import { pullRequestMessage } from "./pull-request-message.ts";
import { factoryScopeMessage } from "./scope-message.ts";

export type PullRequestMethodsDeps = ListPullRequestsDeps;

/** Pull requests that runs of a factory produced. */
export const pullRequestMethods = (deps: PullRequestMethodsDeps) => ({
  listPullRequests: served(async (request: metrics.ListPullRequestsRequest, caller) => {
    const { scope, pullRequests, nextPageToken } = await listPullRequests(deps, caller, {
      factoryUid: request.factoryUid,
      pageSize: request.pageSize,
      pageToken: request.pageToken,
      repo: request.repo,
      states: request.states,
      openedAfter: dateOf(request.openedAfter),
      openedBefore: dateOf(request.openedBefore),
      mergedAfter: dateOf(request.mergedAfter),
      mergedBefore: dateOf(request.mergedBefore),
      updatedAfter: dateOf(request.updatedAfter),
    });
    return { scope: factoryScopeMessage(scope), data: pullRequests.map(pullRequestMessage), nextPageToken };
  }),
});

const dateOf = (time: Timestamp | undefined): Date | undefined => time && timestampDate(time);
