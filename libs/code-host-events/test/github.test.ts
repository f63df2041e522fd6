import { describe, expect, test } from "@jest/globals";
import { PROVIDERS } from "@millwright/definition";
import { branchPushOf, codeHostEventsOf, matches, withAttributes, type CodeHostEvent } from "../src/index.ts";
import { allExamples, exampleOf, fromGithub } from "./examples.ts";

const eventsOf = (name: string, payload: unknown, botLogin?: string): CodeHostEvent[] =>
  codeHostEventsOf(fromGithub(name, payload, botLogin));
const names = (events: readonly CodeHostEvent[]): string[] => events.map(({ event }) => event);

describe("of GitHub's published payloads", () => {
  test("an example exists for every trigger event, or for one of its actions with other values", () => {
    const found = new Set(allExamples.flatMap(({ name, payload }) => names(eventsOf(name, payload))));
    const others = [
      eventsOf("issues", exampleOf("issues", "opened", { "issue.body": "@ada look" })),
      eventsOf("pull_request", exampleOf("pull_request", "closed", { "pull_request.merged": true })),
      eventsOf("pull_request", exampleOf("pull_request", "closed", { "pull_request.merged": false })),
      eventsOf("pull_request", exampleOf("pull_request", "opened", { "pull_request.body": "@ada look" })),
    ];
    for (const events of others) for (const name of names(events)) found.add(name);
    expect([...found].sort()).toEqual([...PROVIDERS["github"]!.events].sort());
  });
  test("ignores events and actions that no trigger matches", () => {
    const silent = new Set(
      allExamples.filter(({ name, payload }) => eventsOf(name, payload).length === 0).map(({ name }) => name),
    );
    expect([...silent]).toEqual(
      expect.arrayContaining(["ping", "create", "delete", "star", "fork", "release", "status"]),
    );
    for (const action of ["deleted", "unlabeled", "unassigned", "transferred", "pinned"])
      expect(eventsOf("issues", exampleOf("issues", action))).toEqual([]);
  });
  test("every event has its repository, which filters select by", () => {
    for (const { name, payload } of allExamples)
      for (const { repository, attributes } of eventsOf(name, payload))
        expect([repository, attributes.repos]).toEqual([expect.stringMatching(/^[^/]+\/[^/]+$/), [repository]]);
  });

  test("issues, pull requests, reviews and comments have an item; pushes have none", () => {
    const all = allExamples.flatMap(({ name, payload }) =>
      eventsOf(name, payload).map((event) => ({ name, ...event })),
    );
    const items = new Map(all.map((event) => [event.name, event.items.length]));
    for (const event of ["issues", "pull_request", "pull_request_review"])
      expect([event, items.get(event)]).toEqual([event, 1]);
    expect(items.get("push")).toBe(0);
    for (const {
      items: [item],
      repository,
      subject,
    } of all.filter((one) => one.items.length > 0 && one.subject.kind !== "build"))
      expect([item!.id, item!.url]).toEqual([expect.stringMatching(new RegExp(`^${repository}#\\d+$`)), subject.url]);
    const [comment] = eventsOf(
      "issue_comment",
      exampleOf("issue_comment", "created", {
        "comment.body": "cc @ada",
        "issue.number": 7,
        "issue.html_url": "https://github.com/a/b/issues/7",
      }),
    );
    expect(comment?.items).toEqual([{ id: "Codertocat/Hello-World#7", url: "https://github.com/a/b/issues/7" }]);
  });
  test("a build is linked to the pull requests of its repository, if any", () => {
    const itemsOf = (name: string, ...numbers: object[]) =>
      eventsOf(
        name,
        exampleOf(name, "completed", {
          [`${name}.pull_requests`]: numbers,
          "repository.html_url": "https://ghe.test/a/b",
          "repository.id": 1,
        }),
      )[0]?.items;
    const repository = eventsOf("workflow_run", exampleOf("workflow_run", "completed"))[0]!.repository;
    expect(
      itemsOf(
        "workflow_run",
        { number: 7 },
        { number: 8, base: { repo: { id: 1 } } },
        { number: 9, base: { repo: { id: 2 } } },
      ),
    ).toEqual([7, 8].map((number) => ({ id: `${repository}#${number}`, url: `https://ghe.test/a/b/pull/${number}` })));
    expect([itemsOf("workflow_run"), itemsOf("check_suite", { number: 7 })?.length]).toEqual([[], 1]);
  });
  test("an issue has labels, assignees and author", () => {
    const [event] = eventsOf(
      "issues",
      exampleOf("issues", "opened", {
        "issue.labels": [{ name: "bug" }, { name: "api" }],
        "issue.assignees": [{ login: "ada" }],
      }),
    );
    expect(event).toMatchObject({
      event: "issue_created",
      attributes: { labels: ["bug", "api"], assignees: ["ada"], authors: ["Codertocat"] },
      subject: { kind: "issue", title: expect.any(String), url: expect.stringContaining("/issues/") },
    });
  });
  test("an added label or assignee alone counts for in, and all of them for not_in", () => {
    const [labeled] = eventsOf(
      "issues",
      exampleOf("issues", "labeled", { "label.name": "ready", "issue.labels": [{ name: "ready" }, { name: "wip" }] }),
    );
    const take = (filter: object) =>
      matches({ provider: "github", event: "issue_labeled", filter: filter as never }, labeled!).matches;
    expect([
      take({ labels: { in: ["ready"] } }),
      take({ labels: { in: ["wip"] } }),
      take({ labels: { in: ["ready"], not_in: ["wip"] } }),
    ]).toEqual([true, false, false]);
    const [assigned] = eventsOf(
      "pull_request",
      exampleOf("pull_request", "assigned", {
        "assignee.login": "bob",
        "pull_request.assignees": [{ login: "ada" }, { login: "bob" }],
      }),
    );
    expect(assigned).toMatchObject({
      event: "pull_request_assigned",
      attributes: { assignees: ["bob"] },
      carried: { assignees: ["ada", "bob"] },
    });
  });

  test("a pull request, and a build of one, has its number", () => {
    const [event] = eventsOf("pull_request", exampleOf("pull_request", "opened", { "pull_request.number": 7 }));
    const take = (...numbers: string[]) =>
      matches({ provider: "github", event: "pull_request_opened", filter: { pr_numbers: { in: numbers } } }, event!)
        .matches;
    expect([take("6", "7"), take("6")]).toEqual([true, false]);
    const [build] = eventsOf(
      "workflow_run",
      exampleOf("workflow_run", "completed", { "workflow_run.pull_requests": [{ number: 7 }, { number: 8 }] }),
    );
    expect(build?.attributes.pr_numbers).toEqual(["7", "8"]);
  });

  test.each([
    ["an issue's text", "issues", "opened", { "issue.body": "cc @Ada" }, "issue_mentioned"],
    ["a comment on an issue", "issue_comment", "created", { "comment.body": "cc @Ada" }, "issue_mentioned"],
    [
      "a comment on a pull request",
      "issue_comment",
      "created",
      { "comment.body": "cc @Ada", "issue.pull_request": { url: "u" } },
      "pull_request_mentioned",
    ],
    ["a pull request's text", "pull_request", "opened", { "pull_request.body": "cc @Ada" }, "pull_request_mentioned"],
    ["a review", "pull_request_review", "submitted", { "review.body": "cc @Ada" }, "pull_request_mentioned"],
    [
      "a comment on a line",
      "pull_request_review_comment",
      "created",
      { "comment.body": "cc @Ada" },
      "pull_request_mentioned",
    ],
  ])("a mention in %s is found", (_where, name, action, changes, event) => {
    expect(
      eventsOf(name, exampleOf(name, action, changes)).find((one) => one.event === event)?.attributes.mentioned,
    ).toEqual(["ada"]);
  });
  test("an edit mentions only new mentions, and only when it changed the text", () => {
    const edited = (changes: object, body: string) =>
      eventsOf("issue_comment", { ...exampleOf("issue_comment", "edited", { "comment.body": body }), changes });
    expect(edited({ body: { from: "@ada" } }, "@ada @bob")[0]?.attributes.mentioned).toEqual(["bob"]);
    expect(edited({ body: { from: "" } }, "@ada")[0]?.attributes.mentioned).toEqual(["ada"]);
    expect(edited({ body: { from: "@ada" } }, "@ada!")).toEqual([]);
    expect(edited({}, "@ada")).toEqual([]);
  });

  test("a pull request has its base branch; its paths come from the code host", () => {
    const [event] = eventsOf("pull_request", exampleOf("pull_request", "opened"));
    expect(event).toMatchObject({
      event: "pull_request_opened",
      attributes: { base_branches: ["master"] },
      unresolved: ["paths"],
      pullRequests: [expect.any(Number)],
    });
    const trigger = {
      provider: "github",
      event: "pull_request_opened",
      filter: { paths: { in: ["api/**"] }, base_branches: { in: ["master"] } },
    };
    expect(matches(trigger, event!)).toMatchObject({ matches: false, needs: ["paths"] });
    expect(matches(trigger, withAttributes(event!, { paths: ["api/v1/a.ts"] }))).toMatchObject({
      matches: true,
      needs: [],
    });
    expect(matches(trigger, withAttributes(event!, { paths: ["web/a.ts"] }))).toMatchObject({
      matches: false,
      needs: [],
    });
    expect(
      matches({ ...trigger, filter: { ...trigger.filter, base_branches: { in: ["release"] } } }, event!),
    ).toMatchObject({ matches: false, needs: [] }); // not fetched
  });
  test("closed and merged are separate events", () => {
    const closed = (merged: boolean) =>
      names(eventsOf("pull_request", exampleOf("pull_request", "closed", { "pull_request.merged": merged })));
    expect([closed(false), closed(true)]).toEqual([["pull_request_closed"], ["pull_request_merged"]]);
  });
  test.each([
    ["labeled", "labeled"],
    ["ready_for_review", "ready"],
    ["reopened", "reopened"],
    ["synchronize", "synchronized"],
  ])("%s of a pull request is pull_request_%s", (action, event) => {
    expect(names(eventsOf("pull_request", exampleOf("pull_request", action)))).toEqual([`pull_request_${event}`]);
  });
  test("a requested review has the reviewer, or the team by slug, name and organisation", () => {
    const [person] = eventsOf("pull_request", exampleOf("pull_request", "review_requested"));
    expect(person).toMatchObject({
      event: "pull_request_review_requested",
      attributes: { reviewers: ["octocat"], reviewer_teams: [] },
    });
    const [team] = eventsOf(
      "pull_request",
      exampleOf("pull_request", "review_requested", {
        requested_reviewer: undefined,
        requested_team: { slug: "core", name: "Core" },
        organization: { login: "octo" },
      }),
    );
    expect(team).toMatchObject({ attributes: { reviewers: [], reviewer_teams: ["core", "Core", "octo/core"] } });
  });
  test("a submitted review has its state, the pull request's author, and the mentioned accounts", () => {
    const [event] = eventsOf(
      "pull_request_review",
      exampleOf("pull_request_review", "submitted", { "review.state": "CHANGES_REQUESTED", "review.body": "see @bob" }),
    );
    expect(event).toMatchObject({
      event: "pull_request_review_submitted",
      attributes: {
        review_states: ["changes_requested"],
        mentioned: ["bob"],
        authors: ["Codertocat"],
        base_branches: ["master"],
      },
    });
    expect(eventsOf("pull_request_review", exampleOf("pull_request_review", "dismissed"))).toEqual([]);
  });

  const push = (changes: Record<string, unknown> = {}) =>
    exampleOf("push", undefined, changes, ({ ref }) => ref === "refs/heads/master");
  test("a push has its branch and the paths of all its commits without duplicates", () => {
    const [event] = eventsOf(
      "push",
      push({
        ref: "refs/heads/feature/x",
        commits: [
          { added: ["a.ts"], modified: ["b.ts"], removed: [] },
          { added: [], modified: ["b.ts"], removed: ["c.ts"] },
        ],
      }),
    );
    expect(event).toMatchObject({
      event: "push",
      attributes: { branches: ["feature/x"], paths: ["a.ts", "b.ts", "c.ts"] },
      unresolved: [],
    });
  });
  test("ignores a pushed tag's branch and a deleted branch", () => {
    expect(eventsOf("push", push({ ref: "refs/tags/v1" }))[0]).toMatchObject({ attributes: { branches: [] } });
    expect(eventsOf("push", push({ deleted: true }))).toEqual([]);
  });
  test("returns the head of a pushed branch and whether it was forced, created or deleted", () => {
    const [a, b, none] = ["a".repeat(40), "b".repeat(40), "0".repeat(40)];
    const pushed = (changes: Record<string, unknown>) =>
      branchPushOf(fromGithub("push", push({ before: a, after: b, forced: false, ...changes })));
    expect(pushed({})).toEqual({
      repository: "Codertocat/Hello-World",
      addresses: ["github.com/codertocat/hello-world"],
      branch: "master",
      headSha: b,
      beforeSha: a,
      isForced: false,
    });
    expect(pushed({ forced: true })?.isForced).toBe(true);
    expect([pushed({ before: none })?.beforeSha, pushed({ after: none, deleted: true })?.headSha]).toEqual([
      undefined,
      undefined,
    ]);
    expect([
      pushed({ ref: "refs/tags/v1" }),
      pushed({ after: "x" }),
      branchPushOf(fromGithub("issues", push())),
    ]).toEqual([undefined, undefined, undefined]);
  });

  test("a build has branch, conclusion and workflow; labels and authors come from the code host", () => {
    const [run] = eventsOf(
      "workflow_run",
      exampleOf("workflow_run", "completed", {
        "workflow_run.conclusion": "failure",
        "workflow_run.pull_requests": [{ number: 7 }],
        "workflow_run.head_branch": "main",
        "workflow_run.name": "CI",
        workflow: { name: "CI", path: ".github/workflows/ci.yml" },
      }),
    );
    expect(run).toMatchObject({
      event: "workflow_run_completed",
      actor: undefined,
      pullRequests: [7],
      unresolved: ["labels", "authors"],
      attributes: {
        branches: ["main"],
        conclusions: ["failure"],
        workflows: ["CI", ".github/workflows/ci.yml", "ci.yml"],
      },
    });
    const [suite] = eventsOf("check_suite", exampleOf("check_suite", "completed", { "check_suite.pull_requests": [] }));
    expect(suite).toMatchObject({
      event: "check_suite_completed",
      attributes: { conclusions: ["success"], labels: [], authors: [] },
      unresolved: [],
    });
    const [check] = eventsOf("check_run", exampleOf("check_run", "rerequested"));
    expect(check).toMatchObject({ event: "check_run_rerequested", attributes: { branches: ["master"] } });
    expect([
      eventsOf("check_run", exampleOf("check_run", "completed")),
      eventsOf("check_suite", exampleOf("check_suite", "requested")),
    ]).toEqual([[], []]);
  });

  test("events of the platform's own account match no trigger, except builds that it caused", () => {
    const opened = exampleOf("pull_request", "opened", { "sender.login": "Mill[bot]" });
    const trigger = { provider: "github", event: "pull_request_opened", filter: {} };
    expect(matches(trigger, eventsOf("pull_request", opened, "mill")[0]!)).toMatchObject({
      matches: false,
      checks: [
        { key: "event", passed: true },
        { key: "actor", passed: false },
      ],
    });
    expect(matches(trigger, eventsOf("pull_request", opened, "other")[0]!).matches).toBe(true);
    const build = exampleOf("check_suite", "completed", { "sender.login": "Mill[bot]" });
    expect(
      matches(
        { provider: "github", event: "check_suite_completed", filter: {} },
        eventsOf("check_suite", build, "mill")[0]!,
      ).matches,
    ).toBe(true);
  });
  test("a form is read like JSON", () => {
    const payload = JSON.stringify(exampleOf("issues", "opened"));
    const form = {
      ...fromGithub("issues", {}),
      headers: { "x-github-event": "issues", "content-type": "application/x-www-form-urlencoded" },
      body: Buffer.from(new URLSearchParams({ payload }).toString()),
    };
    expect(codeHostEventsOf(form)).toEqual(eventsOf("issues", JSON.parse(payload)));
  });
});
