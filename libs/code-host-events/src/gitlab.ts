import { itemsOf, type CodeHostEvent, type Item } from "./event.ts";
import { at, numberAt, some, textAt } from "./json.ts";
import { mentionsIn } from "./mentions.ts";

/**
 * Returns the trigger events of a GitLab delivery: changes of merge requests, and mentions of the platform's account.
 */
export function gitlabEvents(payload: unknown, isPlatform: (login: string) => boolean): CodeHostEvent[] {
  const repository = textAt(payload, "project", "path_with_namespace");
  if (repository === "") return [];
  const login = textAt(payload, "user", "username");
  const common = {
    provider: "gitlab" as const,
    repository,
    carried: {},
    unresolved: [],
    actor: { login, isPlatform: isPlatform(login) },
  };
  const subject = subjectOf(payload);
  const items = itemsIn(payload, repository, subject);
  const isMergeRequest = textAt(payload, "object_kind") === "merge_request";
  const pullRequests = numberAt(payload, isMergeRequest ? "object_attributes" : "merge_request", "iid");
  const happened: CodeHostEvent[] = [];
  if (isMergeRequest) {
    const attributes = {
      repos: [repository],
      actions: some(textAt(payload, "object_attributes", "action")),
      base_branches: some(textAt(payload, "object_attributes", "target_branch")),
    };
    happened.push({ ...common, event: "merge_request", subject, items, pullRequests, attributes });
  }
  if (mentionsIn(newText(payload)).some(isPlatform))
    happened.push({
      ...common,
      event: "bot_mentioned",
      subject,
      items,
      pullRequests,
      attributes: { repos: [repository] },
    });
  return happened;
}

/**
 * Returns newly written text: a comment, or the description of a newly opened item. Payloads of edits do not show what
 * is new.
 */
function newText(payload: unknown): string {
  const [kind, action] = [textAt(payload, "object_kind"), textAt(payload, "object_attributes", "action")];
  if (kind === "note")
    return at(payload, "object_attributes", "system") === true || action === "update"
      ? ""
      : textAt(payload, "object_attributes", "note");
  return ["merge_request", "issue", "work_item"].includes(kind) && action === "open"
    ? textAt(payload, "object_attributes", "description")
    : "";
}

/** GitLab numbers issues and merge requests separately. */
function itemsIn(payload: unknown, repository: string, { kind, url }: CodeHostEvent["subject"]): readonly Item[] {
  const isComment = textAt(payload, "object_kind") === "note";
  const [number] = numberAt(
    payload,
    isComment ? (kind === "issue" ? "issue" : "merge_request") : "object_attributes",
    "iid",
  );
  if (number === undefined || kind === "comment") return [];
  return itemsOf(`${repository}${kind === "issue" ? "#" : "!"}${number}`, url);
}

function subjectOf(payload: unknown): CodeHostEvent["subject"] {
  const [kind, own] = [textAt(payload, "object_kind"), at(payload, "object_attributes")];
  if (kind !== "note")
    return {
      kind: kind === "merge_request" ? "pull_request" : "issue",
      url: textAt(own, "url"),
      title: textAt(own, "title"),
    };
  const on = (["merge_request", "issue"] as const).find((name) => at(payload, name) !== undefined);
  const url = textAt(own, "url").replace(/#note_\d+$/, ""); // the address of what was commented on
  return {
    kind: on === "merge_request" ? "pull_request" : on === "issue" ? "issue" : "comment",
    url,
    title: on === undefined ? "" : textAt(payload, on, "title"),
  };
}
