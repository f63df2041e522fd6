import type { MessageInitShape } from "@bufbuild/protobuf";
import type { metrics } from "@millwright/contracts";
import { AGENT, RUN, TEAM, USER } from "./people.ts";
import { at, CREATED, FACTORY, UPDATED } from "./records.ts";

type Scope = MessageInitShape<typeof metrics.ScopeSchema>;
type Row = MessageInitShape<typeof metrics.PullRequestSchema>;

export const METRICS = `/api/v1/factory/${FACTORY}/metrics`;
export const COSTS = `/api/v1/factory/${FACTORY}/costs`;
export const PULLS = `/api/v1/factory/${FACTORY}/pull-requests`;

/**
 * The scope of a response of the metrics service, without periods and with two weeks, and as the public API returns it.
 */
export const SCOPE: Scope = {
  teamUid: TEAM,
  factoryUid: FACTORY,
  asOf: at(UPDATED),
  startDate: at("2026-11-08T00:00:00Z"),
  endDate: at(CREATED),
  groupByPeriod: "",
};
export const WEEKS: Scope = { ...SCOPE, groupByPeriod: "week", periodList: ["2026-11-08", "2026-11-15"] };
export const ABOUT = { team_uid: TEAM, factory_uid: FACTORY, as_of: UPDATED };
export const RANGED = { ...ABOUT, start_date: "2026-11-08T00:00:00.000Z", end_date: CREATED };
export const OVERALL = { ...RANGED, group_by_period: null };
export const WEEKLY = { ...RANGED, group_by_period: "week", period_list: ["2026-11-08", "2026-11-15"] };

const COUNTS = {
  opened: 0,
  code_push: 1,
  review_approved: 2,
  review_changes_requested: 3,
  review_commented: 4,
  comment: 5,
  review_comment: 6,
  pr_action: 7,
  follow_up_message: 8,
  total: 36,
};

/** A merged pull request with all facts as the service returns it. */
export const aPullRequest = (fields: object = {}): Row => ({
  provider: "GITHUB",
  repoFullName: "acme/shop",
  prNumber: 7,
  url: "https://github.com/acme/shop/pull/7",
  title: 'Fix, "it"',
  authorLogin: "bot",
  factoryUid: FACTORY,
  teamUid: TEAM,
  state: "merged",
  openedAt: at(CREATED),
  firstHumanReviewAt: at(UPDATED),
  mergedAt: at(UPDATED),
  updatedAt: at(UPDATED),
  additions: 10,
  deletions: 0,
  changedFiles: 2,
  numCommits: 3,
  humanInteractions: {
    opened: 0,
    codePush: 1,
    reviewApproved: 2,
    reviewChangesRequested: 3,
    reviewCommented: 4,
    comment: 5,
    reviewComment: 6,
    prAction: 7,
    followUpMessage: 8,
    total: 36,
  },
  humanCodeChange: true,
  historyComplete: true,
  runs: [{ runId: RUN, rootRunId: AGENT, createdAt: at(CREATED) }],
  kickoffAt: at(CREATED),
  cycleTime: { kickoffToPr: 0, prToFirstReview: 59.877, kickoffToMerge: 59.877 },
  firstSeenAt: at(CREATED),
  ...fields,
});

/** The same pull request as the public API returns it. */
export const PULL_REQUEST = {
  provider: "GITHUB",
  repo_full_name: "acme/shop",
  pr_number: 7,
  url: "https://github.com/acme/shop/pull/7",
  title: 'Fix, "it"',
  author_login: "bot",
  factory_uid: FACTORY,
  team_uid: TEAM,
  state: "merged",
  opened_at: CREATED,
  first_human_review_at: UPDATED,
  merged_at: UPDATED,
  closed_at: null,
  updated_at: UPDATED,
  additions: 10,
  deletions: 0,
  changed_files: 2,
  num_commits: 3,
  human_interactions: COUNTS,
  human_code_change: true,
  history_complete: true,
  runs: [{ run_id: RUN, root_run_id: AGENT, created_at: CREATED }],
  kickoff_at: CREATED,
  cycle_time: { kickoff_to_pr: 0, pr_to_first_review: 59.877, first_review_to_merge: null, kickoff_to_merge: 59.877 },
  first_seen_at: CREATED,
};

/** A pull request that only a run has reported, and as the public API returns it. */
export const unreported: Row = {
  provider: "GITLAB",
  repoFullName: "acme/deep/shop",
  prNumber: 8,
  url: "https://gitlab.com/acme/deep/shop/-/merge_requests/8",
  factoryUid: FACTORY,
  teamUid: TEAM,
  state: "open",
  updatedAt: at(CREATED),
  historyComplete: false,
  runs: [{ runId: RUN, rootRunId: RUN, createdAt: at(CREATED) }],
  kickoffAt: at(CREATED),
  cycleTime: {},
  firstSeenAt: at(CREATED),
};
export const UNREPORTED = {
  provider: "GITLAB",
  repo_full_name: "acme/deep/shop",
  pr_number: 8,
  url: "https://gitlab.com/acme/deep/shop/-/merge_requests/8",
  factory_uid: FACTORY,
  team_uid: TEAM,
  state: "open",
  title: null,
  author_login: null,
  opened_at: null,
  first_human_review_at: null,
  merged_at: null,
  closed_at: null,
  updated_at: CREATED,
  additions: null,
  deletions: null,
  changed_files: null,
  num_commits: null,
  human_interactions: null,
  human_code_change: null,
  history_complete: false,
  runs: [{ run_id: RUN, root_run_id: RUN, created_at: CREATED }],
  kickoff_at: CREATED,
  cycle_time: { kickoff_to_pr: null, pr_to_first_review: null, first_review_to_merge: null, kickoff_to_merge: null },
  first_seen_at: CREATED,
};

/** Micro-dollars, and the same as dollars. */
export const spend = (inferenceMicros: bigint, computeMicros = 0n, platformMicros = 0n) => ({
  inferenceMicros,
  computeMicros,
  platformMicros,
});
export const dollars = (inference: number, compute: number, platform: number, total: number) => ({
  inference,
  compute,
  platform,
  total,
});
export const NO_DOLLARS = dollars(0, 0, 0, 0);

/** The costliest pull request, and as the public API returns it. */
export const costed = (fields: object = {}): MessageInitShape<typeof metrics.CostedPullRequestSchema> => ({
  pullRequest: aPullRequest(),
  spend: spend(4_000_000n, 250_000n, 10_000n),
  models: [
    { modelId: "opus", inferenceMicros: 3_000_000n },
    { modelId: "", inferenceMicros: 1_000_000n },
  ],
  creator: { type: "user", uid: USER, displayName: "Ada" },
  source: "API",
  requestedModelId: "auto",
  ...fields,
});
export const COSTED = {
  ...PULL_REQUEST,
  dollars: dollars(4, 0.25, 0.01, 4.26),
  models: [
    { model_id: "opus", dollars: 3, share: 0.75 },
    { model_id: "UNKNOWN", dollars: 1, share: 0.25 },
  ],
  creator: { type: "user", uid: USER, display_name: "Ada" },
  source: "API",
  requested_model_id: "auto",
};
