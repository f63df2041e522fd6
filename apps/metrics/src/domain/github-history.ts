import { at, textAt } from "@millwright/code-host-events";
import { activityMaker, pullRequestFact, reviewOf } from "./github-facts.ts";
import { idAt, timeAt } from "./payload-values.ts";
import type { Activity, PullRequestFacts, ReadList } from "./pull-request-fact.ts";

/** What GitHub's REST API has of a pull request. */
export type GithubHistory = {
  readonly pullRequest: unknown;
  readonly reviews: ReadList;
  readonly comments: ReadList;
  readonly reviewComments: ReadList;
  /** Of the issue: closed, reopened and so on. */
  readonly events: ReadList;
  /** Activities of the head branch. */
  readonly pushes: ReadList;
  readonly readAt: Date;
};

/**
 * Returns what the whole history of a pull request reports: the activities that deliveries report, with the same keys
 * where a delivery names what happened. The opening is among them only if all pushes are known, because whether people
 * changed code is not known otherwise.
 */
export function githubHistoryFacts(history: GithubHistory, botLogin: string): PullRequestFacts | undefined {
  const { pullRequest: item, reviews, reviewComments, pushes } = history;
  const events = history.events ?? [];
  const repository = { full_name: at(item, "base", "repo", "full_name") };
  const pullRequest = pullRequestFact({ pull_request: item, repository }, "pull_request");
  if (!pullRequest) return undefined;
  const activity = activityMaker(pullRequest, botLogin);
  const comments = (kind: "comment" | "review_comment", list: ReadList = []): Activity[] =>
    list
      .filter((comment) => idAt(comment, "id") !== "")
      .map((comment) =>
        activity(kind, `${kind}:${idAt(comment, "id")}`, at(comment, "user"), comment, timeAt(comment, "created_at")),
      );
  const openedAt = pullRequest.openedAt ?? undefined;
  const isPush = pushFilter(events, openedAt);
  return {
    pullRequest,
    historyReadTo: history.events && history.readAt,
    activities: [
      ...(pushes ? [activity("opened", "opened", at(item, "user"), item, openedAt)] : []),
      ...(pushes ?? [])
        .filter(isPush)
        .map((push) =>
          activity(
            "code_push",
            `push:${idAt(push, "before")}:${idAt(push, "after")}`,
            at(push, "actor"),
            undefined,
            timeAt(push, "timestamp"),
          ),
        ),
      ...(reviews ?? []).flatMap((review) => reviewOf(review, "submitted", activity) ?? []),
      ...comments("comment", history.comments),
      ...comments("review_comment", reviewComments),
      ...events
        .filter((event) => PR_ACTIONS.includes(textAt(event, "event")) && idAt(event, "id") !== "")
        .map((event) =>
          activity("pr_action", `event:${idAt(event, "id")}`, at(event, "actor"), event, timeAt(event, "created_at")),
        ),
    ],
  };
}

/** Returns what an entry of the list of changed issues reports; undefined: it is not a pull request. */
export function githubListFacts(item: unknown, repoFullName: string): PullRequestFacts | undefined {
  const pullRequest = pullRequestFact({ issue: item, repository: { full_name: repoFullName } }, "issue");
  return pullRequest && { pullRequest, activities: [] };
}

/** Those that webhooks report as actions; a merge closes the pull request too. */
const PR_ACTIONS: readonly string[] = ["closed", "reopened", "ready_for_review", "convert_to_draft"];
const PUSHES: readonly string[] = ["push", "force_push"];

/** Whether an activity of the head branch changed the pull request: it was open then. */
function pushFilter(events: readonly unknown[], openedAt: Date | undefined): (push: unknown) => boolean {
  const changes = events
    .flatMap((event) => {
      const [name, time] = [textAt(event, "event"), timeAt(event, "created_at")];
      return time && (name === "closed" || name === "reopened") ? [{ name, time }] : [];
    })
    .toSorted((a, b) => a.time.getTime() - b.time.getTime());
  return (push) => {
    const time = timeAt(push, "timestamp");
    if (!time || !openedAt || time <= openedAt || !PUSHES.includes(textAt(push, "activity_type"))) return false;
    return changes.findLast((change) => change.time < time)?.name !== "closed";
  };
}
