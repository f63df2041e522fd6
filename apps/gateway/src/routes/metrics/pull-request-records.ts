import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { z } from "zod";
import type { metrics } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { toDollars } from "@millwright/money";
import { isoTime } from "../formats/json-values.ts";
import { dollarsRecord, rangedRecord } from "./metrics-records.ts";
import type { CostliestPullRequests, PullRequest } from "./metrics-schemas.ts";

const timeOf = (time: Timestamp | undefined): string | null => (time ? isoTime(time) : null);

const interactionsRecord = (counts: metrics.HumanInteractions) => ({
  opened: counts.opened,
  code_push: counts.codePush,
  review_approved: counts.reviewApproved,
  review_changes_requested: counts.reviewChangesRequested,
  review_commented: counts.reviewCommented,
  comment: counts.comment,
  review_comment: counts.reviewComment,
  pr_action: counts.prAction,
  follow_up_message: counts.followUpMessage,
  total: counts.total,
});

export const pullRequestRecord = (found: metrics.PullRequest): z.input<typeof PullRequest> => ({
  provider: found.provider,
  repo_full_name: found.repoFullName,
  pr_number: found.prNumber,
  url: found.url,
  title: found.title ?? null,
  author_login: found.authorLogin ?? null,
  factory_uid: found.factoryUid,
  team_uid: found.teamUid,
  state: found.state as "open",
  opened_at: timeOf(found.openedAt),
  first_human_review_at: timeOf(found.firstHumanReviewAt),
  merged_at: timeOf(found.mergedAt),
  closed_at: timeOf(found.closedAt),
  updated_at: timeOf(found.updatedAt),
  additions: found.additions ?? null,
  deletions: found.deletions ?? null,
  changed_files: found.changedFiles ?? null,
  num_commits: found.numCommits ?? null,
  human_interactions: found.humanInteractions ? interactionsRecord(found.humanInteractions) : null,
  human_code_change: found.humanCodeChange ?? null,
  history_complete: found.historyComplete,
  runs: found.runs.map(({ runId, rootRunId, createdAt }) => ({
    run_id: runId,
    root_run_id: rootRunId,
    created_at: isoTime(createdAt!),
  })),
  kickoff_at: timeOf(found.kickoffAt),
  cycle_time: {
    kickoff_to_pr: found.cycleTime?.kickoffToPr ?? null,
    pr_to_first_review: found.cycleTime?.prToFirstReview ?? null,
    first_review_to_merge: found.cycleTime?.firstReviewToMerge ?? null,
    kickoff_to_merge: found.cycleTime?.kickoffToMerge ?? null,
  },
  first_seen_at: timeOf(found.firstSeenAt),
});

/** Returns each model's share of the pull request's inference spend. Shares are equal if the spend is 0. */
function modelRecords(models: readonly metrics.ModelSpend[]) {
  const total = models.reduce((sum, { inferenceMicros }) => sum + inferenceMicros, 0n);
  return models.map(({ modelId, inferenceMicros }) => ({
    model_id: modelId || "UNKNOWN",
    dollars: toDollars(inferenceMicros),
    share: total === 0n ? 1 / models.length : Number(inferenceMicros) / Number(total),
  }));
}

/** Profile types by principal type. The platform's own principals have none. */
const CREATOR_TYPES: Readonly<Record<string, "user" | "service_account">> = {
  user: "user",
  agent: "service_account",
  service_account: "service_account",
};

const creatorRecord = ({ type, uid, displayName, photoUrl }: metrics.Creator) => ({
  ...omitUndefined({ type: CREATOR_TYPES[type] }),
  uid,
  ...omitUndefined({ display_name: displayName || undefined, photo_url: photoUrl }),
});

const costedRecord = ({
  pullRequest,
  spend,
  models,
  creator,
  source,
  requestedModelId,
}: metrics.CostedPullRequest) => ({
  ...pullRequestRecord(pullRequest!),
  dollars: dollarsRecord(spend),
  models: modelRecords(models),
  creator: creator ? creatorRecord(creator) : null,
  source: source || null,
  requested_model_id: requestedModelId || null,
});

export const costliestRecord = ({
  scope,
  data,
}: metrics.ListCostliestPullRequestsResponse): z.input<typeof CostliestPullRequests> => ({
  ...rangedRecord(scope!),
  data: data.map(costedRecord),
});
