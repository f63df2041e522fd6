import type { Spend } from "../domain/spend.ts";

/** A row of factory_pull_requests as SQL returns it; select `FACTORY_PULL_REQUEST_COLUMNS`. */
export type FactoryPullRequestRow = {
  factory_uid: string;
  url_key: string;
  team_uid: string;
  url: string;
  provider: string;
  repo_full_name: string;
  pr_number: number;
  title: string | null;
  author_login: string | null;
  state: string;
  opened_at: Date | null;
  first_human_review_at: Date | null;
  merged_at: Date | null;
  closed_at: Date | null;
  updated_at: Date;
  additions: number | null;
  deletions: number | null;
  changed_files: number | null;
  num_commits: number | null;
  history_complete: boolean;
  human_code_change: boolean | null;
  human_interactions: Record<HumanInteraction, number> | null;
  runs: readonly { run_id: string; root_run_id: string; created_at: string }[];
  kickoff_at: Date;
  kickoff_run_uid: string;
  first_seen_at: Date;
  inference_micros: string;
  compute_micros: string;
  platform_micros: string;
};

/** Counters of `human_interactions`, and their sum. */
export type HumanInteraction =
  | "opened"
  | "code_push"
  | "review_approved"
  | "review_changes_requested"
  | "review_commented"
  | "comment"
  | "review_comment"
  | "pr_action"
  | "follow_up_message"
  | "total";

/** The record of a pull request that runs of a factory produced; null: not known. */
export type FactoryPullRequest = {
  readonly factoryUid: string;
  readonly urlKey: string;
  readonly teamUid: string;
  readonly url: string;
  readonly provider: string;
  readonly repoFullName: string;
  readonly prNumber: number;
  readonly title: string | null;
  readonly authorLogin: string | null;
  readonly state: string;
  readonly openedAt: Date | null;
  readonly firstHumanReviewAt: Date | null;
  readonly mergedAt: Date | null;
  readonly closedAt: Date | null;
  readonly updatedAt: Date;
  readonly additions: number | null;
  readonly deletions: number | null;
  readonly changedFiles: number | null;
  readonly numCommits: number | null;
  readonly historyComplete: boolean;
  readonly humanCodeChange: boolean | null;
  readonly humanInteractions: Readonly<Record<HumanInteraction, number>> | null;
  /** Oldest first. */
  readonly runs: readonly { readonly runUid: string; readonly rootRunUid: string; readonly createdAt: Date }[];
  readonly kickoffAt: Date;
  readonly kickoffRunUid: string;
  readonly firstSeenAt: Date;
  readonly spend: Spend;
};

const COLUMNS = [
  "factory_uid",
  "url_key",
  "team_uid",
  "url",
  "provider",
  "repo_full_name",
  "pr_number",
  "title",
  "author_login",
  "state",
  "opened_at",
  "first_human_review_at",
  "merged_at",
  "closed_at",
  "updated_at",
  "additions",
  "deletions",
  "changed_files",
  "num_commits",
  "history_complete",
  "human_code_change",
  "human_interactions",
  "runs",
  "kickoff_at",
  "kickoff_run_uid",
  "first_seen_at",
];
const MICROS = ["inference_micros", "compute_micros", "platform_micros"];

/** Columns to select from `factory_pull_requests f`. Money is text: an int8 may exceed the safe integers. */
export const FACTORY_PULL_REQUEST_COLUMNS: string = [
  ...COLUMNS.map((column) => `f.${column}`),
  ...MICROS.map((column) => `f.${column}::text AS ${column}`),
].join(", ");

/** Returns the record of a row. */
export const toFactoryPullRequest = (row: FactoryPullRequestRow): FactoryPullRequest => ({
  factoryUid: row.factory_uid,
  urlKey: row.url_key,
  teamUid: row.team_uid,
  url: row.url,
  provider: row.provider,
  repoFullName: row.repo_full_name,
  prNumber: row.pr_number,
  title: row.title,
  authorLogin: row.author_login,
  state: row.state,
  openedAt: row.opened_at,
  firstHumanReviewAt: row.first_human_review_at,
  mergedAt: row.merged_at,
  closedAt: row.closed_at,
  updatedAt: row.updated_at,
  additions: row.additions,
  deletions: row.deletions,
  changedFiles: row.changed_files,
  numCommits: row.num_commits,
  historyComplete: row.history_complete,
  humanCodeChange: row.human_code_change,
  humanInteractions: row.human_interactions,
  runs: row.runs.map((run) => ({
    runUid: run.run_id,
    rootRunUid: run.root_run_id,
    createdAt: new Date(run.created_at),
  })),
  kickoffAt: row.kickoff_at,
  kickoffRunUid: row.kickoff_run_uid,
  firstSeenAt: row.first_seen_at,
  spend: {
    inferenceMicros: BigInt(row.inference_micros),
    computeMicros: BigInt(row.compute_micros),
    platformMicros: BigInt(row.platform_micros),
  },
});
