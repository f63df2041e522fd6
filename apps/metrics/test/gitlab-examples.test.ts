import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { gitlabFacts } from "../src/domain/gitlab-facts.ts";
import { changed, GITLAB_EXAMPLES } from "./code-host-payloads.ts";
import { deliveryWorld } from "./delivery-world.ts";
import { NOW, startWorld, TEAM, type World } from "./setup.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.reset());
afterAll(() => world.stop());

const facts = (payload: unknown, botLogin = "") => gitlabFacts(payload, botLogin, NOW);
const { mergeRequest, noteOnMergeRequest } = GITLAB_EXAMPLES;

test("reads every documented example, and facts from those of merge requests alone", () => {
  const reporting = Object.entries(GITLAB_EXAMPLES).filter(([, payload]) => facts(payload) !== undefined);
  expect(reporting.map(([name]) => name)).toEqual(["mergeRequest", "noteOnMergeRequest"]);
});

test("records every documented example without giving one up", async () => {
  const { gitlab, settle, activities } = deliveryWorld(world);
  for (const payload of Object.values(GITLAB_EXAMPLES))
    gitlab(payload.object_kind === "note" ? "Note Hook" : "Merge Request Hook", payload);
  await settle();
  expect(
    await world.rows(
      "SELECT team_uid, url_key, repo_full_name, pr_number, title, author_login, state, opened_at FROM pull_requests ORDER BY url_key",
    ),
  ).toEqual([
    {
      team_uid: TEAM,
      url_key: "example.com/diaspora/merge_requests/1",
      repo_full_name: "gitlabhq/gitlab-test",
      pr_number: 1,
      title: "MS-Viewport",
      author_login: null,
      state: "open",
      opened_at: new Date("2013-12-03T17:23:34Z"),
    },
    {
      team_uid: TEAM,
      url_key: "example.com/gitlab-org/gitlab-test/merge_requests/1",
      repo_full_name: "gitlab-org/gitlab-test",
      pr_number: 1,
      title: "Tempora et eos debitis quae laborum et.",
      author_login: null,
      state: "open",
      opened_at: new Date("2015-03-01T20:12:53Z"),
    },
  ]);
  expect(await activities()).toEqual([
    {
      kind: "opened",
      actor_login: "root",
      is_person: true,
      is_dismissed: false,
      occurred_at: new Date("2013-12-03T17:23:34Z"),
    },
    {
      kind: "comment",
      actor_login: "root",
      is_person: true,
      is_dismissed: false,
      occurred_at: new Date("2015-05-17T18:21:36Z"),
    },
  ]);
});

test.each<[string, Record<string, unknown>, string[]]>([
  ["the opening", { "object_attributes.action": "open" }, ["opened"]],
  [
    "a push",
    {
      "object_attributes.action": "update",
      "object_attributes.oldrev": "95790bf891e76fee5e1747ab589903a6a1f80f22",
      changes: {},
    },
    ["code_push"],
  ],
  ["another update", { "object_attributes.action": "update", changes: {} }, []],
  ["leaving the draft", { "object_attributes.action": "update" }, ["pr_action"]],
  ["the closing", { "object_attributes.action": "close", "object_attributes.state": "closed" }, ["pr_action"]],
  ["the reopening", { "object_attributes.action": "reopen" }, ["pr_action"]],
  ["the merge", { "object_attributes.action": "merge", "object_attributes.state": "merged" }, ["pr_action"]],
  ["an approval", { "object_attributes.action": "approval" }, ["review_approved"]],
  ["the last approval", { "object_attributes.action": "approved" }, ["review_approved"]],
  ["an unknown action", { "object_attributes.action": "celebrate" }, []],
  [
    "a review that requests changes",
    {
      "object_attributes.action": "update",
      changes: {
        reviewers: {
          previous: [{ username: "root", state: "unreviewed" }],
          current: [{ username: "root", state: "requested_changes" }],
        },
      },
    },
    ["review_changes_requested"],
  ],
  [
    "somebody else's review",
    {
      "object_attributes.action": "update",
      changes: {
        reviewers: {
          previous: [{ username: "ada", state: "unreviewed" }],
          current: [{ username: "ada", state: "reviewed" }],
        },
      },
    },
    [],
  ],
])("counts %s", (_, changes, kinds) =>
  expect(facts(changed(mergeRequest, changes))!.activities.map(({ kind }) => kind)).toEqual(kinds),
);

test("reports states, drafts and the time of the merge", () => {
  const of = (state: string, draft = false) =>
    facts(changed(mergeRequest, { "object_attributes.state": state, "object_attributes.draft": draft }))!.pullRequest;
  expect(["opened", "locked", "closed", "merged", "unheard of"].map((state) => of(state).status?.state)).toEqual([
    "open",
    "open",
    "closed",
    "merged",
    undefined,
  ]);
  expect(of("opened", true).status?.state).toBe("draft");
  expect([of("opened").mergedAt, of("merged").mergedAt]).toEqual([null, new Date("2013-12-03T17:23:34Z")]);
});

test("knows the author's login from the author's own deeds", () =>
  expect(facts(changed(mergeRequest, { "object_attributes.author_id": 1 }))!.pullRequest.authorLogin).toBe("root"));

test("distinguishes comments on lines of code from others, and ignores notes of the system and edits", () => {
  const kinds = (changes: Record<string, unknown>) =>
    facts(changed(noteOnMergeRequest, changes))!.activities.map(({ kind }) => kind);
  expect(kinds({ "object_attributes.type": "DiffNote" })).toEqual(["review_comment"]);
  expect(kinds({ "object_attributes.type": "DiscussionNote" })).toEqual(["comment"]);
  expect([kinds({ "object_attributes.system": true }), kinds({ "object_attributes.action": "update" })]).toEqual([
    [],
    [],
  ]);
});

test.each<[string, boolean]>([
  ["root", true],
  ["abbot", true],
  ["project_5_bot", false],
  ["project_5_bot2", false],
  ["project_5_bot_4ffca233d8298ea1", false],
  ["group_7_bot_4ffca233d8298ea1", false],
  ["service_account_group_7_8b1b", false],
  ["support-bot", false],
  ["GitLabDuo", false],
  ["Mill-Bot", false],
])("takes %s as a person: %s", (username, isPerson) => {
  const [activity] = facts(changed(noteOnMergeRequest, { "user.username": username }), "mill-bot")!.activities;
  expect(activity).toMatchObject({ actorLogin: username, isPerson });
});

test("has the closing's time from the closing, and none after the reopening", async () => {
  const { gitlab, settle } = deliveryWorld(world);
  const send = (action: string, state: string, at: string) =>
    gitlab(
      "Merge Request Hook",
      changed(mergeRequest, {
        "object_attributes.action": action,
        "object_attributes.state": state,
        "object_attributes.updated_at": at,
      }),
    );
  const closing = async () => {
    await settle();
    return (await world.rows("SELECT state, closed_at FROM pull_requests"))[0];
  };
  send("close", "closed", "2014-01-01T00:00:00Z");
  send("update", "closed", "2014-01-02T00:00:00Z");
  expect(await closing()).toEqual({ state: "closed", closed_at: new Date("2014-01-01T00:00:00Z") });
  send("reopen", "opened", "2014-01-03T00:00:00Z");
  expect(await closing()).toEqual({ state: "open", closed_at: null });
});

test.each([
  ["in order", false],
  ["in the other order", true],
])("does not count an approval that is withdrawn, delivered %s", async (_, isReversed) => {
  const { gitlab, settle, activities } = deliveryWorld(world);
  const sent = [
    () => gitlab("Merge Request Hook", changed(mergeRequest, { "object_attributes.action": "approval" }), NOW),
    () =>
      gitlab(
        "Merge Request Hook",
        changed(mergeRequest, { "object_attributes.action": "unapproval" }),
        new Date(NOW.getTime() + 1000),
      ),
    () =>
      gitlab(
        "Merge Request Hook",
        changed(mergeRequest, { "object_attributes.action": "approval", "user.username": "ada" }),
        NOW,
      ),
  ];
  for (const send of isReversed ? sent.toReversed() : sent) {
    send();
    await settle();
  }
  const counted = (await activities()).filter((activity) => !activity.is_dismissed);
  expect(counted.map(({ kind, actor_login: login }) => [kind, login])).toEqual([["review_approved", "ada"]]);
});
