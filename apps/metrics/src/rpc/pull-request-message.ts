import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { metrics } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { optionalTimestamp } from "@millwright/rpc";
import { cycleTime } from "../domain/cycle-time.ts";
import type { FactoryPullRequest } from "../store/factory-pull-request-row.ts";

/** Returns the message of a pull request's record. Unknown values are absent. */
export const pullRequestMessage = (record: FactoryPullRequest): metrics.PullRequest =>
  create(metrics.PullRequestSchema, {
    provider: record.provider,
    repoFullName: record.repoFullName,
    prNumber: record.prNumber,
    url: record.url,
    factoryUid: record.factoryUid,
    teamUid: record.teamUid,
    state: record.state,
    historyComplete: record.historyComplete,
    runs: record.runs.map(({ runUid, rootRunUid, createdAt }) => ({
      runId: runUid,
      rootRunId: rootRunUid,
      createdAt: timestampFromDate(createdAt),
    })),
    kickoffAt: timestampFromDate(record.kickoffAt),
    cycleTime: omitUndefined(cycleTime(record)),
    firstSeenAt: timestampFromDate(record.firstSeenAt),
    updatedAt: timestampFromDate(record.updatedAt),
    title: record.title ?? undefined,
    authorLogin: record.authorLogin ?? undefined,
    openedAt: optionalTimestamp(record.openedAt),
    firstHumanReviewAt: optionalTimestamp(record.firstHumanReviewAt),
    mergedAt: optionalTimestamp(record.mergedAt),
    closedAt: optionalTimestamp(record.closedAt),
    additions: record.additions ?? undefined,
    deletions: record.deletions ?? undefined,
    changedFiles: record.changedFiles ?? undefined,
    numCommits: record.numCommits ?? undefined,
    humanCodeChange: record.humanCodeChange ?? undefined,
    humanInteractions: record.humanInteractions === null ? undefined : interactionsMessage(record.humanInteractions),
  });

const interactionsMessage = (
  counted: NonNullable<FactoryPullRequest["humanInteractions"]>,
): metrics.HumanInteractions =>
  create(metrics.HumanInteractionsSchema, {
    opened: counted.opened,
    codePush: counted.code_push,
    reviewApproved: counted.review_approved,
    reviewChangesRequested: counted.review_changes_requested,
    reviewCommented: counted.review_commented,
    comment: counted.comment,
    reviewComment: counted.review_comment,
    prAction: counted.pr_action,
    followUpMessage: counted.follow_up_message,
    total: counted.total,
  });
