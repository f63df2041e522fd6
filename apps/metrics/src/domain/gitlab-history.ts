import { at, textAt } from "@millwright/code-host-events";
import { isPerson, mergeRequestFact } from "./gitlab-facts.ts";
import { idAt, storableTextAt, timeAt } from "./payload-values.ts";
import type { Activity, ActivityKind, PullRequestFact, PullRequestFacts, ReadList } from "./pull-request-fact.ts";

/** What GitLab's REST API has of a merge request. */
export type GitlabHistory = {
  readonly mergeRequest: unknown;
  /** Comments, and notes that GitLab writes about what people did. */
  readonly notes: ReadList;
  readonly stateEvents: ReadList;
  /** One per push, the first of which is the opening. */
  readonly versions: ReadList;
  readonly readAt: Date;
};

/**
 * Returns what the whole history of a merge request reports: the activities that deliveries report, with the same keys
 * where a delivery names what happened. Reviews without an approval are in deliveries only. The opening and the pushes
 * are among them only if it is known who pushed.
 */
export function gitlabHistoryFacts(
  history: GitlabHistory,
  repoFullName: string,
  botLogin: string,
): PullRequestFacts | undefined {
  const { mergeRequest, notes, stateEvents, versions } = history;
  const pullRequest = gitlabListFacts(mergeRequest, repoFullName)?.pullRequest;
  if (!pullRequest) return undefined;
  const activity = (kind: ActivityKind, key: string, actor: unknown, occurredAt: Date | undefined): Activity => {
    const actorLogin = storableTextAt(actor, "username");
    return {
      kind,
      key,
      actorLogin,
      isPerson: isPerson(actorLogin, botLogin),
      isDismissed: false,
      occurredAt: occurredAt ?? pullRequest.updatedAt,
    };
  };
  const author = at(mergeRequest, "author");
  const isWhole = notes !== undefined && stateEvents !== undefined;
  return {
    pullRequest,
    historyReadTo: isWhole ? history.readAt : undefined,
    activities: [
      ...(notes && versions
        ? [
            activity("opened", "opened", author, pullRequest.openedAt ?? undefined),
            ...pushesOf(versions, notes).map(({ key, actor, time }) => activity("code_push", key, actor, time)),
          ]
        : []),
      ...noteActivities(notes ?? [], activity).filter(({ kind }) => isWhole || !APPROXIMATE.includes(kind)),
      ...(isWhole ? stateEvents : []).flatMap((event) => {
        const action = STATES[textAt(event, "state")];
        if (action === undefined || idAt(event, "id") === "") return [];
        const key = `${action}:event:${idAt(event, "id")}`;
        return [activity("pr_action", key, at(event, "user"), timeAt(event, "created_at"))];
      }),
    ],
  };
}

/** Returns what an entry of the list of changed merge requests reports. */
export function gitlabListFacts(item: unknown, repoFullName: string): PullRequestFacts | undefined {
  const fact = mergeRequestFact(
    {
      object_attributes: { ...(item as object), url: at(item, "web_url"), author_id: at(item, "author", "id") },
      project: { path_with_namespace: repoFullName },
      user: at(item, "author"),
    },
    "object_attributes",
  );
  return fact && { pullRequest: withClosing(fact, item), activities: [] };
}

const withClosing = (fact: PullRequestFact, item: unknown): PullRequestFact =>
  fact.status?.state === "closed"
    ? { ...fact, status: { ...fact.status, closedAt: timeAt(item, "closed_at") ?? null } }
    : fact;

/** Kinds that deliveries report with the time of the delivery. */
const APPROXIMATE: readonly ActivityKind[] = ["review_approved", "pr_action"];

/** As deliveries name the action. */
const STATES: Readonly<Record<string, string>> = { closed: "close", reopened: "reopen", merged: "merge" };

type MakeActivity = (kind: ActivityKind, key: string, actor: unknown, occurredAt: Date | undefined) => Activity;

/** A withdrawal dismisses the person's earlier approvals. */
function noteActivities(notes: readonly unknown[], make: MakeActivity): Activity[] {
  const inOrder = notes
    .flatMap((note) => {
      const time = timeAt(note, "created_at");
      return time && idAt(note, "id") !== "" ? [{ note, time }] : [];
    })
    .toSorted((a, b) => a.time.getTime() - b.time.getTime());
  const activities: Activity[] = [];
  for (const { note, time } of inOrder) {
    const body = textAt(note, "body");
    const of = (kind: ActivityKind): Activity => make(kind, `note:${idAt(note, "id")}`, at(note, "author"), time);
    if (at(note, "system") !== true)
      activities.push(of(textAt(note, "type") === "DiffNote" ? "review_comment" : "comment"));
    else if (body.startsWith("approved this merge request")) activities.push(of("review_approved"));
    else if (/^marked (?:this merge request )?as (?:a )?\W*(?:draft|ready)/i.test(body))
      activities.push(of("pr_action"));
    else if (body.startsWith("unapproved this merge request")) dismissApprovals(activities, of("review_approved"));
  }
  return activities;
}

function dismissApprovals(activities: Activity[], { actorLogin }: Activity): void {
  for (const [index, activity] of activities.entries())
    if (activity.kind === "review_approved" && activity.actorLogin === actorLogin)
      activities[index] = { ...activity, isDismissed: true };
}

type Push = { readonly key: string; readonly actor: unknown; readonly time: Date };

/** How far apart a push and GitLab's note about it may be. */
const NOTE_MS_MAX = 60_000;

/** Versions do not name who pushed: the note about the added commits that is nearest in time does. */
function pushesOf(versions: readonly unknown[], notes: readonly unknown[]): Push[] {
  const inOrder = versions
    .flatMap((version) => {
      const [time, head] = [timeAt(version, "created_at"), idAt(version, "head_commit_sha")];
      return time && head !== "" ? [{ time, head }] : [];
    })
    .toSorted((a, b) => a.time.getTime() - b.time.getTime());
  const added = notes.flatMap((note) => {
    const time = timeAt(note, "created_at");
    return time && at(note, "system") === true && /^added \d+ commits?/.test(textAt(note, "body"))
      ? [{ note, time }]
      : [];
  });
  return inOrder.slice(1).map(({ time, head }, index) => {
    const distance = (candidate: { readonly time: Date }): number =>
      Math.abs(candidate.time.getTime() - time.getTime());
    const [nearest] = added
      .filter((candidate) => distance(candidate) <= NOTE_MS_MAX)
      .toSorted((a, b) => distance(a) - distance(b));
    return { key: `push:${inOrder[index]!.head}:${head}`, actor: at(nearest?.note, "author"), time };
  });
}
