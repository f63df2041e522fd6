import { at, textAt } from "@millwright/code-host-events";
import { countAt, idAt, storableTextAt, timeAt } from "./payload-values.ts";
import {
  isAddress,
  type Activity,
  type ActivityKind,
  type PullRequestFact,
  type PullRequestFacts,
  type PullRequestSize,
} from "./pull-request-fact.ts";

/** Events, by the `X-GitHub-Event` header, that report facts of pull requests. */
export const GITHUB_EVENTS: readonly string[] = [
  "pull_request",
  "pull_request_review",
  "pull_request_review_comment",
  "pull_request_review_thread",
  "issue_comment",
];

/**
 * Returns what a delivery of GitHub reports of a pull request; undefined: nothing. Never throws. `botLogin`: the
 * account under which the platform acts there; "" = not known.
 */
export function githubFacts(event: string, payload: unknown, botLogin: string): PullRequestFacts | undefined {
  if (!GITHUB_EVENTS.includes(event)) return undefined;
  const pullRequest = pullRequestFact(payload, event === "issue_comment" ? "issue" : "pull_request");
  if (!pullRequest) return undefined;
  const activity = activityOf(event, payload, pullRequest, botLogin);
  return { pullRequest, activities: activity ? [activity] : [] };
}

/** Payloads of conversation comments contain the pull request as an issue, without its size. */
export function pullRequestFact(payload: unknown, member: "issue" | "pull_request"): PullRequestFact | undefined {
  const item = at(payload, member);
  if (member === "issue" && at(item, "pull_request") === undefined) return undefined;
  const url = textAt(item, "pull_request", "html_url") || textAt(item, "html_url");
  const repoFullName = textAt(payload, "repository", "full_name");
  const prNumber = countAt(item, "number");
  const updatedAt = timeAt(item, "updated_at");
  if (!isAddress(url, repoFullName, prNumber) || !updatedAt) return undefined;
  const mergedAt = timeAt(item, "merged_at") ?? timeAt(item, "pull_request", "merged_at") ?? null;
  return {
    provider: "GITHUB",
    url,
    repoFullName,
    prNumber,
    updatedAt,
    authorLogin: storableTextAt(item, "user", "login") || null,
    openedAt: timeAt(item, "created_at") ?? null,
    mergedAt,
    status: statusOf(item, mergedAt),
    size: sizeOf(item),
  };
}

/** An open pull request may be a draft, and a closed one merged: some payloads do not report which. */
function statusOf(item: unknown, mergedAt: Date | null): PullRequestFact["status"] {
  const title = storableTextAt(item, "title");
  if (mergedAt) return { state: "merged", title, closedAt: null };
  const isDraft = at(item, "draft");
  if (at(item, "state") === "open" && typeof isDraft === "boolean")
    return { state: isDraft ? "draft" : "open", title, closedAt: null };
  const isUnmerged = at(item, "merged_at") === null || at(item, "pull_request", "merged_at") === null;
  if (at(item, "state") !== "closed" || !isUnmerged) return null;
  return { state: "closed", title, closedAt: timeAt(item, "closed_at") ?? null };
}

function sizeOf(item: unknown): PullRequestSize | null {
  const [additions, deletions] = [countAt(item, "additions"), countAt(item, "deletions")];
  const [changedFiles, numCommits] = [countAt(item, "changed_files"), countAt(item, "commits")];
  const isKnown =
    additions !== undefined && deletions !== undefined && changedFiles !== undefined && numCommits !== undefined;
  return isKnown ? { additions, deletions, changedFiles, numCommits } : null;
}

/**
 * Actions of `pull_request` that count as `pr_action`. Labels, assignees and the like are not work on the pull request.
 */
const PR_ACTIONS: readonly string[] = ["closed", "reopened", "ready_for_review", "converted_to_draft"];

const REVIEWS: Readonly<Record<string, ActivityKind>> = {
  approved: "review_approved",
  changes_requested: "review_changes_requested",
  commented: "review_commented",
};

function activityOf(
  event: string,
  payload: unknown,
  pullRequest: PullRequestFact,
  botLogin: string,
): Activity | undefined {
  const action = textAt(payload, "action");
  const item = at(payload, "pull_request");
  const activity = activityMaker(pullRequest, botLogin);
  const sender = at(payload, "sender");
  if (event === "pull_request") {
    if (action === "opened") return activity("opened", "opened", sender, item, pullRequest.openedAt ?? undefined);
    if (action === "synchronize") {
      const key = `push:${idAt(payload, "before")}:${idAt(payload, "after")}`;
      return activity("code_push", key, sender, undefined, pullRequest.updatedAt);
    }
    if (!PR_ACTIONS.includes(action)) return undefined;
    const occurredAt = (action === "closed" ? timeAt(item, "closed_at") : undefined) ?? pullRequest.updatedAt;
    const key = `${action}:${occurredAt.toISOString()}`;
    return { ...activity("pr_action", key, sender, undefined, occurredAt), isApproximate: true };
  }
  if (event === "pull_request_review") return reviewOf(at(payload, "review"), action, activity);
  const comment = at(payload, "comment");
  const id = idAt(comment, "id");
  if (action !== "created" || id === "") return undefined;
  const kind = event === "issue_comment" ? "comment" : "review_comment";
  return activity(kind, `${kind}:${id}`, at(comment, "user"), comment, timeAt(comment, "created_at"));
}

/** `subject`: what the actor made or did; it names the app that did it for them. */
type MakeActivity = (
  kind: ActivityKind,
  key: string,
  actor: unknown,
  subject: unknown,
  occurredAt: Date | undefined,
) => Activity;

/** Returns how to make activities of a pull request. */
export const activityMaker =
  (pullRequest: PullRequestFact, botLogin: string): MakeActivity =>
  (kind, key, actor, subject, occurredAt) => ({
    kind,
    key,
    actorLogin: storableTextAt(actor, "login"),
    isPerson: isPerson(actor, subject, botLogin),
    isDismissed: false,
    occurredAt: occurredAt ?? pullRequest.updatedAt,
  });

/** The payload of a dismissed review no longer contains its verdict. */
export function reviewOf(review: unknown, action: string, activity: MakeActivity): Activity | undefined {
  const id = idAt(review, "id");
  const state = textAt(review, "state").toLowerCase();
  const isDismissed = action === "dismissed" || state === "dismissed";
  const kind = isDismissed ? "review_commented" : Object.hasOwn(REVIEWS, state) ? REVIEWS[state] : undefined;
  if (!kind || id === "" || (action !== "submitted" && !isDismissed)) return undefined;
  return { ...activity(kind, `review:${id}`, at(review, "user"), review, timeAt(review, "submitted_at")), isDismissed };
}

function isPerson(actor: unknown, subject: unknown, botLogin: string): boolean {
  const login = textAt(actor, "login");
  const isByApp = (at(subject, "performed_via_github_app") ?? null) !== null;
  return (
    login !== "" &&
    at(actor, "type") !== "Bot" &&
    !/\[bot\]$/i.test(login) &&
    !isByApp &&
    plainLogin(login) !== plainLogin(botLogin)
  );
}

/** GitHub's apps act as `name[bot]` and are mentioned as `@name`. */
const plainLogin = (login: string): string =>
  login
    .replace(/^@/, "")
    .replace(/\[bot\]$/i, "")
    .toLowerCase();
