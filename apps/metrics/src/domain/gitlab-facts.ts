import { at, listAt, textAt } from "@millwright/code-host-events";
import { countAt, idAt, storableTextAt, timeAt } from "./payload-values.ts";
import {
  isAddress,
  type Activity,
  type ActivityKind,
  type PullRequestFact,
  type PullRequestFacts,
} from "./pull-request-fact.ts";

/** Events, by the `X-Gitlab-Event` header, that report facts of merge requests. */
export const GITLAB_EVENTS: readonly string[] = ["Merge Request Hook", "Note Hook"];

/**
 * Returns what a delivery of GitLab reports of a merge request; undefined: nothing. Never throws. `botLogin`: the
 * account under which the platform acts there; "" = not known.
 */
export function gitlabFacts(payload: unknown, botLogin: string, receivedAt: Date): PullRequestFacts | undefined {
  const kind = textAt(payload, "object_kind");
  if (kind !== "merge_request" && kind !== "note") return undefined;
  const pullRequest = mergeRequestFact(payload, kind === "note" ? "merge_request" : "object_attributes");
  if (!pullRequest) return undefined;
  const activities =
    kind === "note" ? noteActivities(payload) : mergeRequestActivities(payload, pullRequest, receivedAt);
  const actorLogin = storableTextAt(payload, "user", "username");
  const actor = { actorLogin, isPerson: isPerson(actorLogin, botLogin) };
  return { pullRequest, activities: activities.map((activity) => ({ isDismissed: false, ...activity, ...actor })) };
}

/** An activity without its actor, whom the payload names once for all. */
type UnattributedActivity = Pick<Activity, "key" | "kind" | "occurredAt"> & {
  readonly isDismissed?: boolean;
  readonly isApproximate?: boolean;
};

export function mergeRequestFact(
  payload: unknown,
  member: "merge_request" | "object_attributes",
): PullRequestFact | undefined {
  const item = at(payload, member);
  const prNumber = countAt(item, "iid");
  // Comments of older versions lack the merge request's URL; their own URL is the same with a fragment.
  const url = (textAt(item, "url") || textAt(payload, "object_attributes", "url")).replace(/#.*$/s, "");
  const repoFullName = textAt(payload, "project", "path_with_namespace");
  const updatedAt = timeAt(item, "updated_at");
  if (!isAddress(url, repoFullName, prNumber) || !updatedAt) return undefined;
  const isByAuthor = idAt(item, "author_id") !== "" && idAt(item, "author_id") === idAt(payload, "user", "id");
  return {
    provider: "GITLAB",
    url,
    repoFullName,
    prNumber,
    updatedAt,
    // Payloads name the author by a number; only the author's own activities name the login.
    authorLogin: isByAuthor ? storableTextAt(payload, "user", "username") || null : null,
    openedAt: timeAt(item, "created_at") ?? null,
    // Payloads lack the time of the merge: it is that of the first fact that reports it.
    mergedAt: textAt(item, "state") === "merged" ? (timeAt(item, "merged_at") ?? updatedAt) : null,
    status: statusOf(item),
    size: null,
  };
}

/** `locked`: being merged just now. Payloads lack the time of the closing: the store has it from the activity. */
function statusOf(item: unknown): PullRequestFact["status"] {
  const title = storableTextAt(item, "title");
  const isDraft = at(item, "draft") ?? at(item, "work_in_progress");
  switch (textAt(item, "state")) {
    case "merged":
      return { state: "merged", title, closedAt: null };
    case "closed":
      return { state: "closed", title, closedAt: null };
    case "opened":
    case "locked":
      return typeof isDraft === "boolean" ? { state: isDraft ? "draft" : "open", title, closedAt: null } : null;
    default:
      return null;
  }
}

function noteActivities(payload: unknown): UnattributedActivity[] {
  const note = at(payload, "object_attributes");
  const [id, occurredAt] = [idAt(note, "id"), timeAt(note, "created_at")];
  const isNew = at(note, "system") !== true && textAt(note, "action") !== "update";
  if (!isNew || id === "" || !occurredAt) return [];
  return [{ kind: textAt(note, "type") === "DiffNote" ? "review_comment" : "comment", key: `note:${id}`, occurredAt }];
}

/** Actions that count as `pr_action`; they change the merge request, and so its time. */
const PR_ACTIONS: readonly string[] = ["close", "reopen", "merge"];
const APPROVALS: readonly string[] = ["approval", "approved"];
const WITHDRAWALS: readonly string[] = ["unapproval", "unapproved"];

function mergeRequestActivities(
  payload: unknown,
  { openedAt, updatedAt }: PullRequestFact,
  receivedAt: Date,
): UnattributedActivity[] {
  const action = textAt(payload, "object_attributes", "action");
  const time = updatedAt.toISOString();
  const login = idAt(payload, "user", "username");
  if (action === "open") return [{ kind: "opened", key: "opened", occurredAt: openedAt ?? updatedAt }];
  if (PR_ACTIONS.includes(action))
    return [{ kind: "pr_action", key: `${action}:${time}`, occurredAt: updatedAt, isApproximate: true }];
  // A review need not change the merge request, whose time then is an older one.
  if (APPROVALS.includes(action))
    return [{ kind: "review_approved", key: `approval:${login}:${time}`, occurredAt: receivedAt, isApproximate: true }];
  if (WITHDRAWALS.includes(action)) {
    const key = `unapproval:${login}:${time}`;
    return [{ kind: "review_approved", key, occurredAt: receivedAt, isDismissed: true, isApproximate: true }];
  }
  return action === "update" ? updateActivities(payload, updatedAt, receivedAt) : [];
}

const REVIEWS: Readonly<Record<string, ActivityKind>> = {
  requested_changes: "review_changes_requested",
  reviewed: "review_commented",
};

/** One update may report a push, entering or leaving draft, and a review. */
function updateActivities(payload: unknown, updatedAt: Date, receivedAt: Date): UnattributedActivity[] {
  const time = updatedAt.toISOString();
  const [before, after] = [
    idAt(payload, "object_attributes", "oldrev"),
    idAt(payload, "object_attributes", "last_commit", "id"),
  ];
  const draft = at(payload, "changes", "draft") ?? at(payload, "changes", "work_in_progress");
  const login = idAt(payload, "user", "username");
  const review = reviewerState(payload, "current", login);
  const kind =
    review !== reviewerState(payload, "previous", login) && Object.hasOwn(REVIEWS, review)
      ? REVIEWS[review]
      : undefined;
  return [
    ...(before === "" ? [] : [{ kind: "code_push" as const, key: `push:${before}:${after}`, occurredAt: updatedAt }]),
    ...(draft === undefined
      ? []
      : [{ kind: "pr_action" as const, key: `draft:${time}`, occurredAt: updatedAt, isApproximate: true }]),
    ...(kind ? [{ kind, key: `review:${review}:${login}:${time}`, occurredAt: receivedAt }] : []),
  ];
}

function reviewerState(payload: unknown, when: "previous" | "current", login: string): string {
  const reviewer = listAt(payload, "changes", "reviewers", when).find(
    (candidate) => textAt(candidate, "username") === login,
  );
  return textAt(reviewer, "state");
}

/**
 * Users of project and group access tokens, service accounts, and GitLab's own. Payloads do not mark them otherwise.
 */
const BOTS: readonly RegExp[] = [
  /^(?:project|group)_\d+_bot(?:\d*|_.*)$/i,
  /^service_account_/i,
  /^(?:gitlabduo|gitlab-[a-z-]*bot)$/i,
  /^(?:alert|support|security|automation|migration|admin|visual-review|llm)-bot$/i,
];

/** Returns whether an account is that of a person. */
export const isPerson = (login: string, botLogin: string): boolean =>
  login !== "" &&
  !BOTS.some((bot) => bot.test(login)) &&
  login.toLowerCase() !== botLogin.replace(/^@/, "").toLowerCase();
