/** Events and filter attributes of automation triggers. */

/** The events of its provider on which an attribute exists. */
type Applies = (event: string) => boolean;
export type FilterRule = {
  readonly on: Applies;
  /** `payload`: a payload filter; `numbers`: lists of whole numbers; otherwise lists of text. */
  readonly kind?: "payload" | "numbers";
  /** Accepts a list or `in`, but not `not_in`. */
  readonly isInclusionOnly?: boolean;
  /** At least one value is required. */
  readonly isRequired?: boolean;
  /** Maximum number of values. */
  readonly max?: number;
  readonly oneOf?: readonly string[];
  /** The pattern of each value, and the end of "must …" in the error for other values. */
  readonly form?: { readonly pattern: RegExp; readonly hint: string };
};
export type Provider = {
  readonly events: readonly string[];
  readonly filters: Readonly<Record<string, FilterRule>>;
};

const every: Applies = () => true;
const isPush: Applies = (event) => event === "push";
const isIssue: Applies = (event) => event.startsWith("issue_");
const isPullRequest: Applies = (event) => event.startsWith("pull_request_");
const isBuild: Applies = (event) => /^(check_(suite|run)|workflow_run)_/.test(event);
const isMention: Applies = (event) => event.endsWith("_mentioned") || event === "pull_request_review_submitted";
const either =
  (...rules: Applies[]): Applies =>
  (event) =>
    rules.some((rule) => rule(event));
const only =
  (...events: string[]): Applies =>
  (event) =>
    events.includes(event);

const all = (...keys: string[]): Record<string, FilterRule> =>
  Object.fromEntries(keys.map((key) => [key, { on: every }]));

const onReactions = (...keys: string[]): Record<string, FilterRule> =>
  Object.fromEntries(keys.map((key) => [key, { on: only("reaction_added") }]));

const GITHUB: Provider = {
  events: [
    ...["issue_created", "issue_labeled", "issue_assigned", "issue_mentioned"],
    ...[
      "opened",
      "closed",
      "merged",
      "labeled",
      "assigned",
      "mentioned",
      "ready",
      "reopened",
      "synchronized",
      "review_requested",
      "review_submitted",
    ].map((what) => `pull_request_${what}`),
    ...["push", "check_suite_completed", "check_run_rerequested", "check_suite_rerequested", "workflow_run_completed"],
  ],
  filters: {
    repos: {
      on: every,
      form: {
        pattern: /^(?!.*(^|\/)\.{1,2}($|\/))[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+$/,
        hint: "be a repository with its owner, such as acme/shop",
      },
    },
    branches: { on: either(isPush, isBuild) },
    base_branches: { on: isPullRequest },
    pr_numbers: { on: isPullRequest, kind: "numbers" },
    paths: { on: either(isPush, isPullRequest) },
    labels: { on: either(isIssue, isPullRequest, isBuild) },
    authors: { on: either(isIssue, isPullRequest, isBuild) },
    assignees: { on: either(isIssue, isPullRequest) },
    mentioned: { on: isMention },
    reviewers: { on: only("pull_request_review_requested") },
    reviewer_teams: { on: only("pull_request_review_requested") },
    review_states: { on: only("pull_request_review_submitted"), oneOf: ["approved", "changes_requested", "commented"] },
    workflows: { on: only("workflow_run_completed") },
    conclusions: { on: only("check_suite_completed", "workflow_run_completed") },
  },
};

const GITLAB_PROJECT = {
  pattern: /^(?!.*(^|\/)\.{1,2}($|\/))[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)+$/,
  hint: "be a project with its group, such as acme/shop",
};

const AZURE: Provider = {
  events: [
    ...["created", "assigned", "labeled", "mentioned"].map((what) => `work_item_${what}`),
    ...["created", "merged", "closed", "updated", "commented", "mentioned"].map((what) => `pull_request_${what}`),
    "push",
  ],
  filters: {
    ...all("repos", "authors"),
    source_repos: { on: isPullRequest },
    branches: { on: isPush },
    target_branches: { on: isPullRequest },
    work_item_types: { on: (event) => event.startsWith("work_item_") },
    labels: { on: (event) => !isPush(event) },
    assignees: { on: (event) => !isPush(event) },
    mentioned: { on: isMention },
  },
};

/** Stages of a task. */
export const TASK_STAGES = ["TRIAGE", "SPEC", "IMPLEMENT", "REVIEW", "COMPLETE", "CANCELLED"] as const;

/**
 * Providers whose events this platform receives; a trigger of another provider is stored but inactive.
 */
export const SERVED_PROVIDERS: ReadonlySet<string> = new Set(["webhook", "schedule", "factory", "github", "gitlab"]);

export const PROVIDERS: Readonly<Record<string, Provider>> = {
  github: GITHUB,
  gitlab: {
    events: ["merge_request", "bot_mentioned"],
    filters: {
      repos: { on: every, form: GITLAB_PROJECT },
      actions: { on: only("merge_request") },
      base_branches: { on: only("merge_request") },
    },
  },
  linear: {
    events: [
      "issue_created",
      "issue_labeled",
      "issue_assigned",
      "issue_state_changed",
      "comment_created",
      "agent_session_created",
    ],
    filters: {
      ...all("teams", "labels", "projects", "states", "assignees", "mentioned", "issues", "creators", "keywords"),
      ...all("team_ids", "project_ids", "state_ids", "assignee_ids", "mentioned_user_ids", "issue_ids", "creator_ids"),
    },
  },
  jira: {
    events: ["issue_created", "issue_labeled", "status_changed", "agent_session_created"],
    filters: all("project_keys", "keywords", "labels", "statuses", "status_ids"),
  },
  slack: {
    events: [
      "app_mention",
      "message_posted",
      "message_dm",
      "member_joined_channel",
      "reaction_added",
      "message_im",
      "message_mpim",
    ],
    filters: {
      ...all("channels", "channel_ids", "users", "user_ids", "keywords"),
      ...onReactions("emojis", "item_users", "item_user_ids"),
    },
  },
  teams: {
    events: ["app_mention", "message_posted"],
    filters: {
      team_ids: { on: every, isInclusionOnly: true, isRequired: true, max: 1 },
      channel_ids: { on: every, isInclusionOnly: true, isRequired: true },
      keywords: { on: every, isInclusionOnly: true },
      user_ids: { on: every, isInclusionOnly: true },
    },
  },
  azure_devops: AZURE,
  schedule: { events: ["cron_fired"], filters: {} },
  webhook: {
    events: ["received"],
    filters: {
      webhook_ids: { on: every, isInclusionOnly: true, isRequired: true, max: 1 },
      payload: { on: every, kind: "payload" },
    },
  },
  factory: {
    events: ["work_item_stage_changed"],
    filters: {
      stages: { on: every, oneOf: TASK_STAGES },
      from_stages: { on: every, oneOf: TASK_STAGES },
      ...all("ticket_sources"),
    },
  },
};
