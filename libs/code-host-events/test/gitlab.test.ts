import { describe, expect, test } from "@jest/globals";
import { PROVIDERS } from "@millwright/definition";
import { branchPushOf, codeHostEventsOf, matches } from "../src/index.ts";
import { fromGitlab } from "./examples.ts";

/** The relevant members of GitLab's documented payloads, and some irrelevant ones. */
const project = {
  id: 15,
  name: "Diaspora",
  path_with_namespace: "mike/tools/diaspora",
  default_branch: "main",
  web_url: "https://gitlab.test/mike/tools/diaspora",
  git_ssh_url: "git@gitlab.test:mike/tools/diaspora.git",
};
const user = { id: 1, name: "Ada", username: "ada" };
const mergeRequest = (own: object = {}, more: object = {}) => ({
  object_kind: "merge_request",
  event_type: "merge_request",
  user,
  project,
  labels: [{ title: "API" }],
  object_attributes: {
    id: 99,
    iid: 12,
    title: "Faster",
    description: "",
    target_branch: "main",
    source_branch: "fast",
    state: "opened",
    action: "open",
    url: "https://gitlab.test/mike/tools/diaspora/-/merge_requests/12",
    ...own,
  },
  ...more,
});
const note = (own: object = {}, more: object = { merge_request: { iid: 12, title: "Faster" } }) => ({
  object_kind: "note",
  event_type: "note",
  user,
  project,
  object_attributes: {
    id: 1244,
    note: "@mill-bot please look",
    noteable_type: "MergeRequest",
    system: false,
    action: "create",
    url: "https://gitlab.test/mike/tools/diaspora/-/merge_requests/12#note_1244",
    ...own,
  },
  ...more,
});
const names = (payload: unknown, bot?: string) => codeHostEventsOf(fromGitlab(payload, bot)).map(({ event }) => event);

describe("of GitLab's documented payloads", () => {
  test("a merge request has its project, action and target", () => {
    const [event] = codeHostEventsOf(fromGitlab(mergeRequest()));
    expect(event).toMatchObject({
      provider: "gitlab",
      event: "merge_request",
      repository: "mike/tools/diaspora",
      pullRequests: [12],
      actor: { login: "ada", isPlatform: false },
      attributes: { repos: ["mike/tools/diaspora"], actions: ["open"], base_branches: ["main"] },
      subject: { kind: "pull_request", title: "Faster" },
    });
  });
  test.each(["open", "close", "reopen", "update", "approved", "unapproved", "approval", "unapproval", "merge"])(
    "the action %s can be selected",
    (action) => {
      const [event] = codeHostEventsOf(fromGitlab(mergeRequest({ action })));
      const take = (actions: string[]) =>
        matches({ provider: "gitlab", event: "merge_request", filter: { actions: { in: actions } } }, event!).matches;
      expect([take([action]), take(["other"])]).toEqual([true, false]);
    },
  );
  test("a mention of the platform's account is found on merge requests, issues and commits, and in descriptions", () => {
    expect(names(note())).toEqual(["bot_mentioned"]);
    expect(names(note({ noteable_type: "Issue" }, { issue: { iid: 3, title: "Slow" } }))).toEqual(["bot_mentioned"]);
    expect(names(note({ noteable_type: "Commit" }, { commit: { id: "c" } }))).toEqual(["bot_mentioned"]);
    expect(names(mergeRequest({ description: "cc @Mill-Bot" }))).toEqual(["merge_request", "bot_mentioned"]);
    expect(names({ ...mergeRequest({ description: "cc @mill-bot" }), object_kind: "issue" })).toEqual([
      "bot_mentioned",
    ]);
  });
  test("ignores mentions of others, in code, in a system note, in an edit, or while the account is unknown", () => {
    expect(names(note({ note: "@ada look" }))).toEqual([]);
    expect(names(note({ note: "`@mill-bot`" }))).toEqual([]);
    expect(names(note({ system: true }))).toEqual([]);
    expect(names(note({ action: "update" }))).toEqual([]);
    expect(names(note(), "")).toEqual([]);
  });
  test("events of the platform's own account match no trigger", () => {
    const own = { user: { username: "mill-bot" } };
    const [event] = codeHostEventsOf(fromGitlab(mergeRequest({}, own)));
    expect(matches({ provider: "gitlab", event: "merge_request", filter: {} }, event!).matches).toBe(false);
  });
  test("the page of a comment is the page of its subject", () => {
    expect(codeHostEventsOf(fromGitlab(note()))[0]).toMatchObject({
      subject: {
        kind: "pull_request",
        title: "Faster",
        url: "https://gitlab.test/mike/tools/diaspora/-/merge_requests/12",
      },
      pullRequests: [12],
    });
  });
  test("a merge request and an issue are items with separate numbers; a commit is not", () => {
    const itemOf = (payload: unknown) => codeHostEventsOf(fromGitlab(payload))[0]?.items[0];
    const url = "https://gitlab.test/mike/tools/diaspora/-/merge_requests/12";
    expect([itemOf(mergeRequest()), itemOf(note())]).toEqual([
      { id: "mike/tools/diaspora!12", url },
      { id: "mike/tools/diaspora!12", url },
    ]);
    expect(
      itemOf(
        note({ noteable_type: "Issue", url: "https://gitlab.test/i/3#note_1" }, { issue: { iid: 3, title: "Slow" } }),
      ),
    ).toEqual({ id: "mike/tools/diaspora#3", url: "https://gitlab.test/i/3" });
    expect(itemOf({ ...mergeRequest({ description: "cc @mill-bot" }), object_kind: "issue" })?.id).toBe(
      "mike/tools/diaspora#12",
    );
    expect(itemOf(note({ noteable_type: "Commit" }, { commit: { id: "c" } }))).toBeUndefined();
  });
  test("returns the head of a pushed branch, and nothing for a pushed tag", () => {
    const push = {
      object_kind: "push",
      event_name: "push",
      ref: "refs/heads/main",
      before: "a".repeat(40),
      after: "b".repeat(40),
      project,
    };
    expect(branchPushOf(fromGitlab(push))).toEqual({
      repository: "mike/tools/diaspora",
      addresses: ["gitlab.test/mike/tools/diaspora"],
      branch: "main",
      headSha: "b".repeat(40),
      beforeSha: "a".repeat(40),
      isForced: false,
    });
    expect(branchPushOf(fromGitlab({ ...push, after: "0".repeat(40) }))?.headSha).toBeUndefined();
    expect(branchPushOf(fromGitlab({ ...push, object_kind: "tag_push", ref: "refs/tags/v1" }))).toBeUndefined();
    expect(names(push)).toEqual([]);
  });
  test("covers all events that triggers know", () => {
    expect([...PROVIDERS["gitlab"]!.events].sort()).toEqual(["bot_mentioned", "merge_request"]);
  });
});
