import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { githubFacts } from "../src/domain/github-facts.ts";
import { GITHUB_EXAMPLES, githubExample } from "./code-host-payloads.ts";
import { deliveryWorld } from "./delivery-world.ts";
import { startWorld, TEAM, type World } from "./setup.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
beforeEach(() => world.reset());
afterAll(() => world.stop());

const REPORTING = ["pull_request", "pull_request_review", "pull_request_review_comment", "pull_request_review_thread"];

test("reads every published example, and facts from those of pull requests alone", () => {
  expect(GITHUB_EXAMPLES.length).toBeGreaterThan(300);
  const reporting = GITHUB_EXAMPLES.filter(({ name, payload }) => githubFacts(name, payload, "") !== undefined);
  expect(reporting).toEqual(GITHUB_EXAMPLES.filter(({ name }) => REPORTING.includes(name)));
});

test("records every published example without giving one up", async () => {
  const { github, settle } = deliveryWorld(world);
  for (const { name, payload } of GITHUB_EXAMPLES) github(name, payload);
  await settle();
  expect(await world.rows("SELECT FROM stream.dead_lettered_events")).toEqual([]);
  const [hello] = await world.rows(
    "SELECT * FROM pull_requests WHERE url_key = 'github.com/codertocat/hello-world/pull/2'",
  );
  expect(hello).toMatchObject({
    team_uid: TEAM,
    url: "https://github.com/Codertocat/Hello-World/pull/2",
    provider: "GITHUB",
    repo_full_name: "Codertocat/Hello-World",
    pr_number: 2,
    author_login: "Codertocat",
    opened_at: new Date("2019-05-15T15:20:33Z"),
    state: "closed",
    closed_at: new Date("2019-05-15T15:21:18Z"),
    merged_at: null,
    additions: 1,
    deletions: 1,
    changed_files: 1,
    num_commits: 1,
  });
});

describe("the published example", () => {
  test.each<[string, string, string | undefined, string | undefined]>([
    ["opened", "open", "opened", "opened"],
    [
      "synchronize",
      "open",
      "code_push",
      "push:f95f852bd8fca8fcc58a9a2d6c842781e32a215e:ec26c3e57ca3a959ca5aad62de7213c562f8c821",
    ],
    ["closed", "closed", "pr_action", "closed:2019-05-15T15:21:18.000Z"],
    ["reopened", "open", "pr_action", "reopened:2019-05-15T15:20:33.000Z"],
    ["ready_for_review", "open", "pr_action", "ready_for_review:2019-05-15T15:21:18.000Z"],
    ["converted_to_draft", "draft", "pr_action", "converted_to_draft:2019-05-15T15:21:18.000Z"],
    ["labeled", "open", undefined, undefined],
    ["assigned", "open", undefined, undefined],
    ["locked", "open", undefined, undefined],
    ["review_requested", "open", undefined, undefined],
  ])("of pull_request %s reports the state %s and %s", (action, state, kind, key) => {
    const facts = githubFacts("pull_request", githubExample("pull_request", action), "")!;
    expect(facts.pullRequest).toMatchObject({
      prNumber: 2,
      status: { state, title: "Update the README with new information." },
      size: { additions: 1, deletions: 1, changedFiles: 1, numCommits: 1 },
    });
    const expected =
      kind === undefined ? [] : [{ kind, key, actorLogin: "Codertocat", isPerson: true, isDismissed: false }];
    expect(
      facts.activities.map(({ kind: what, key: under, actorLogin, isPerson, isDismissed }) => ({
        kind: what,
        key: under,
        actorLogin,
        isPerson,
        isDismissed,
      })),
    ).toEqual(expected);
  });

  test.each<[string, string, string, boolean]>([
    ["pull_request_review", "submitted", "review_commented", false],
    ["pull_request_review", "dismissed", "review_commented", true],
    ["pull_request_review_comment", "created", "review_comment", false],
  ])("of %s %s reports %s (dismissed: %s)", (event, action, kind, isDismissed) => {
    const { activities, pullRequest } = githubFacts(event, githubExample(event, action), "")!;
    expect(activities).toEqual([
      expect.objectContaining({ kind, isDismissed, isPerson: true, actorLogin: "Codertocat" }),
    ]);
    expect(pullRequest.size).toBeNull();
  });

  test.each(["edited", "deleted"])("of a review comment that is %s reports no activity", (action) =>
    expect(
      githubFacts("pull_request_review_comment", githubExample("pull_request_review_comment", action), "")!.activities,
    ).toEqual([]),
  );

  test("of a comment on an issue reports nothing", () =>
    expect(githubFacts("issue_comment", githubExample("issue_comment", "created"), "")).toBeUndefined());
});
