import { itemsOf, type Attributes, type CodeHostEvent, type FilterKey, type Item } from "./event.ts";
import { at, listAt, numberAt, some, textAt, textsOf } from "./json.ts";
import { mentionsIn, newMentions } from "./mentions.ts";

/** The part of an event that differs between events of one delivery. */
type EventFields = Pick<CodeHostEvent, "event" | "attributes" | "subject"> & {
  /** Of an issue or a pull request. */ readonly number?: number | undefined;
} & Partial<Pick<CodeHostEvent, "carried" | "unresolved" | "pullRequests" | "actor">>;

/** Readers by `X-GitHub-Event` header. Other names and actions yield no events. */
const READERS: Readonly<Record<string, (payload: unknown, action: string) => EventFields[]>> = {
  issues: readIssue,
  issue_comment: readIssueComment,
  pull_request: readPullRequest,
  pull_request_review: readReview,
  pull_request_review_comment: readReviewComment,
  push: readPush,
  check_suite: (payload, action) =>
    readBuild(payload, `check_suite_${action}`, at(payload, "check_suite"), at(payload, "check_suite")),
  check_run: (payload, action) =>
    readBuild(payload, `check_run_${action}`, at(payload, "check_run"), at(payload, "check_run", "check_suite")),
  workflow_run: (payload, action) =>
    readBuild(payload, `workflow_run_${action}`, at(payload, "workflow_run"), at(payload, "workflow_run")),
};

/** Returns the trigger events of a GitHub delivery. */
export function githubEvents(name: string, payload: unknown, isPlatform: (login: string) => boolean): CodeHostEvent[] {
  const repository = textAt(payload, "repository", "full_name");
  const reader = Object.hasOwn(READERS, name) ? READERS[name] : undefined;
  if (!reader || repository === "") return [];
  const login = textAt(payload, "sender", "login");
  return reader(payload, textAt(payload, "action")).map(({ number, ...fields }) => ({
    provider: "github",
    repository,
    carried: {},
    unresolved: [],
    pullRequests: [],
    actor: { login, isPlatform: isPlatform(login) },
    ...fields,
    attributes: { repos: [repository], ...pullRequestNumbers(fields), ...fields.attributes },
    items:
      fields.subject.kind === "build"
        ? itemsOfBuild(payload, repository, fields)
        : number === undefined
          ? []
          : itemsOf(`${repository}#${number}`, fields.subject.url), // GitHub counts issues and pull requests together
  }));
}

/** Payloads of builds lack the addresses of pull requests but have the repository's. */
function itemsOfBuild(
  payload: unknown,
  repository: string,
  { pullRequests = [] }: Pick<EventFields, "pullRequests">,
): readonly Item[] {
  const url = textAt(payload, "repository", "html_url");
  return url === ""
    ? []
    : pullRequests.flatMap((number) => itemsOf(`${repository}#${number}`, `${url}/pull/${number}`));
}

const pullRequestNumbers = ({ pullRequests = [] }: Pick<EventFields, "pullRequests">): Attributes =>
  pullRequests.length > 0 ? { pr_numbers: pullRequests.map(String) } : {};

function readIssue(payload: unknown, action: string): EventFields[] {
  const issue = at(payload, "issue");
  const base = { number: numberOf(issue), subject: subjectOf("issue", issue), attributes: itemAttributes(issue) };
  const mentions = writtenMentions(payload, textAt(issue, "body"), action, "opened");
  const mentioned =
    mentions.length > 0
      ? [{ ...base, event: "issue_mentioned", attributes: { ...base.attributes, mentioned: mentions } }]
      : [];
  switch (action) {
    case "opened":
      return [{ ...base, event: "issue_created" }, ...mentioned];
    case "labeled":
      return [
        {
          ...base,
          event: "issue_labeled",
          ...added(base.attributes, "labels", some(textAt(payload, "label", "name"))),
        },
      ];
    case "assigned":
      return [
        {
          ...base,
          event: "issue_assigned",
          ...added(base.attributes, "assignees", some(textAt(payload, "assignee", "login"))),
        },
      ];
    default:
      return mentioned;
  }
}

/** Comments on issues and on the conversation of pull requests; for the latter the payload lacks the branch. */
function readIssueComment(payload: unknown, action: string): EventFields[] {
  const issue = at(payload, "issue");
  const mentioned = writtenMentions(payload, textAt(payload, "comment", "body"), action, "created");
  if (mentioned.length === 0) return [];
  const attributes = { ...itemAttributes(issue), mentioned };
  const number = numberOf(issue);
  if (at(issue, "pull_request") === undefined)
    return [{ number, event: "issue_mentioned", subject: subjectOf("issue", issue), attributes }];
  return [
    {
      number,
      event: "pull_request_mentioned",
      subject: subjectOf("pull_request", issue),
      attributes,
      unresolved: ["base_branches", "paths"],
      pullRequests: numberAt(issue, "number"),
    },
  ];
}

const ACTIONS_OF_PULL_REQUESTS: Readonly<Record<string, string>> = {
  opened: "opened",
  labeled: "labeled",
  assigned: "assigned",
  ready_for_review: "ready",
  reopened: "reopened",
  synchronize: "synchronized",
  review_requested: "review_requested",
};

function readPullRequest(payload: unknown, action: string): EventFields[] {
  const base = pullRequestBase(payload);
  const pullRequest = at(payload, "pull_request");
  const mentions = writtenMentions(payload, textAt(pullRequest, "body"), action, "opened");
  const mentioned =
    mentions.length > 0
      ? [{ ...base, event: "pull_request_mentioned", attributes: { ...base.attributes, mentioned: mentions } }]
      : [];
  const what =
    action === "closed"
      ? at(pullRequest, "merged") === true
        ? "merged"
        : "closed"
      : Object.hasOwn(ACTIONS_OF_PULL_REQUESTS, action)
        ? ACTIONS_OF_PULL_REQUESTS[action]
        : undefined;
  if (what === undefined) return mentioned;
  return [{ ...base, event: `pull_request_${what}`, ...happenedTo(base.attributes, what, payload) }, ...mentioned];
}

/** Returns the label, assignee or reviewer that was added to a pull request, if any. */
function happenedTo(
  attributes: Attributes,
  what: string,
  payload: unknown,
): Pick<EventFields, "attributes"> & Partial<Pick<EventFields, "carried">> {
  if (what === "labeled") return added(attributes, "labels", some(textAt(payload, "label", "name")));
  if (what === "assigned") return added(attributes, "assignees", some(textAt(payload, "assignee", "login")));
  if (what !== "review_requested") return { attributes };
  const team = textAt(payload, "requested_team", "slug");
  const teams = [
    ...some(team),
    ...some(textAt(payload, "requested_team", "name")),
    ...(team === ""
      ? []
      : some(textAt(payload, "organization", "login")).map((organization) => `${organization}/${team}`)),
  ];
  return {
    attributes: {
      ...attributes,
      reviewers: some(textAt(payload, "requested_reviewer", "login")),
      reviewer_teams: teams,
    },
  };
}

function readReview(payload: unknown, action: string): EventFields[] {
  if (action !== "submitted") return [];
  const base = pullRequestBase(payload);
  const mentioned = mentionsIn(textAt(payload, "review", "body"));
  const attributes = { ...base.attributes, mentioned };
  return [
    {
      ...base,
      event: "pull_request_review_submitted",
      attributes: { ...attributes, review_states: some(textAt(payload, "review", "state").toLowerCase()) },
    },
    ...(mentioned.length > 0 ? [{ ...base, event: "pull_request_mentioned", attributes }] : []),
  ];
}

function readReviewComment(payload: unknown, action: string): EventFields[] {
  const mentioned = writtenMentions(payload, textAt(payload, "comment", "body"), action, "created");
  const base = pullRequestBase(payload);
  return mentioned.length > 0
    ? [{ ...base, event: "pull_request_mentioned", attributes: { ...base.attributes, mentioned } }]
    : [];
}

/** Ignores deleted branches and tags; a pushed tag has no branch. */
function readPush(payload: unknown): EventFields[] {
  if (at(payload, "deleted") === true) return [];
  const ref = textAt(payload, "ref");
  const paths = new Set(
    listAt(payload, "commits").flatMap((commit) =>
      ["added", "modified", "removed"].flatMap((kind) =>
        listAt(commit, kind).filter((path) => typeof path === "string"),
      ),
    ),
  );
  const title = textAt(payload, "head_commit", "message").split("\n")[0]!;
  return [
    {
      event: "push",
      subject: { kind: "push", url: textAt(payload, "compare"), title },
      attributes: { branches: branchOf(ref), paths: [...paths] },
    },
  ];
}

const BUILD_EVENTS: ReadonlySet<string> = new Set([
  "check_suite_completed",
  "check_suite_rerequested",
  "check_run_rerequested",
  "workflow_run_completed",
]);

/** Labels and authors are those of the linked pull requests; payloads contain only the numbers. */
function readBuild(payload: unknown, event: string, build: unknown, onBranch: unknown): EventFields[] {
  if (!BUILD_EVENTS.has(event)) return [];
  const pullRequests = listAt(build, "pull_requests")
    .filter((pullRequest) => isOfRepository(pullRequest, payload))
    .flatMap((pullRequest) => numberAt(pullRequest, "number"));
  const workflow = at(payload, "workflow");
  const path = textAt(workflow, "path");
  const title = textAt(build, "name") || textAt(build, "app", "name");
  return [
    {
      event,
      pullRequests,
      actor: undefined,
      subject: { kind: "build", url: textAt(build, "html_url"), title },
      attributes: {
        branches: some(textAt(onBranch, "head_branch")),
        conclusions: some(textAt(build, "conclusion")),
        ...(event.startsWith("workflow_run_") && {
          workflows: [
            ...new Set([
              ...some(textAt(workflow, "name")),
              ...some(textAt(build, "name")),
              ...some(path),
              ...some(path.split("/").at(-1)!),
            ]),
          ],
        }),
        ...(pullRequests.length === 0 && { labels: [], authors: [] }),
      },
      unresolved: pullRequests.length === 0 ? [] : ["labels", "authors"],
    },
  ];
}

/** Builds of a fork list pull requests of the repository it was forked from; those are used. */
const isOfRepository = (pullRequest: unknown, payload: unknown): boolean =>
  [undefined, at(payload, "repository", "id")].includes(at(pullRequest, "base", "repo", "id"));

function pullRequestBase(
  payload: unknown,
): Pick<EventFields, "number" | "subject" | "attributes" | "unresolved" | "pullRequests"> {
  const pullRequest = at(payload, "pull_request");
  const unresolved: FilterKey[] = ["paths"];
  return {
    number: numberOf(pullRequest),
    subject: subjectOf("pull_request", pullRequest),
    unresolved,
    pullRequests: numberAt(pullRequest, "number"),
    attributes: { ...itemAttributes(pullRequest), base_branches: some(textAt(pullRequest, "base", "ref")) },
  };
}

const numberOf = (item: unknown): number | undefined => numberAt(item, "number")[0];

const itemAttributes = (item: unknown): Attributes => ({
  labels: textsOf(listAt(item, "labels"), "name"),
  assignees: textsOf(listAt(item, "assignees"), "login"),
  authors: some(textAt(item, "user", "login")),
});

/** Returns the attributes of an item to which something was added. */
const added = (
  attributes: Attributes,
  key: "labels" | "assignees",
  values: readonly string[],
): Required<Pick<EventFields, "attributes" | "carried">> => ({
  attributes: { ...attributes, [key]: values },
  carried: { [key]: attributes[key] ?? [] },
});

/** Returns who is newly mentioned: an edit mentions only those that the text did not mention before. */
function writtenMentions(payload: unknown, text: string, action: string, writing: "opened" | "created"): string[] {
  if (action === writing) return mentionsIn(text);
  return action === "edited" && at(payload, "changes", "body") !== undefined
    ? newMentions(text, textAt(payload, "changes", "body", "from"))
    : [];
}

const subjectOf = (kind: "issue" | "pull_request", item: unknown): CodeHostEvent["subject"] => ({
  kind,
  url: textAt(item, "html_url"),
  title: textAt(item, "title"),
});

const HEADS = "refs/heads/";
/** Returns undefined for a tag. */
export const branchOf = (ref: string): string[] => (ref.startsWith(HEADS) ? some(ref.slice(HEADS.length)) : []);
