import type { z } from "zod";
import { members, type Column } from "./metrics-export.ts";
import type { PullRequest } from "./metrics-schemas.ts";

type Row = z.input<typeof PullRequest>;

const STAGES = ["kickoff_to_pr", "pr_to_first_review", "first_review_to_merge", "kickoff_to_merge"] as const;
const INTERACTIONS = [
  "opened",
  "code_push",
  "review_approved",
  "review_changes_requested",
  "review_commented",
  "comment",
  "review_comment",
  "pr_action",
  "follow_up_message",
  "total",
] as const satisfies readonly (keyof NonNullable<Row["human_interactions"]>)[];

/**
 * CSV columns of a pull request: the members of its record. Members of nested objects are prefixed with the object's
 * name.
 */
export const PULL_REQUEST_COLUMNS: Column<Row>[] = [
  ...members<Row>("url", "provider", "repo_full_name", "pr_number", "title", "author_login", "state"),
  ...members<Row>(
    "opened_at",
    "first_human_review_at",
    "merged_at",
    "closed_at",
    "updated_at",
    "first_seen_at",
    "kickoff_at",
  ),
  ...members<Row>("additions", "deletions", "changed_files", "num_commits", "human_code_change", "history_complete"),
  ...INTERACTIONS.map((name): Column<Row> => ({
    name: `human_interactions_${name}`,
    value: ({ human_interactions: counts }) => counts?.[name],
  })),
  ...STAGES.map((name): Column<Row> => ({
    name: `cycle_time_${name}`,
    value: ({ cycle_time: stages }) => stages[name],
  })),
  { name: "run_ids", value: ({ runs }) => runs.map(({ run_id: id }) => id).join(" ") },
];
