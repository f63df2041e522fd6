import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { eventually, seededRandom } from "@millwright/testing";
import { urlKey } from "../src/domain/url-key.ts";
import { lockFactories } from "../src/store/factory-lock.ts";
import { projectPullRequests } from "../src/store/project-pull-requests.ts";
import { githubExample, type Payload } from "./code-host-payloads.ts";
import { deliveryWorld } from "./delivery-world.ts";
import { NOW, OTHER_TEAM, OWNER, startWorld, TEAM, type World } from "./setup.ts";

let world: World;
let on: ReturnType<typeof deliveryWorld>;
let factoryUid: string;
beforeAll(async () => {
  world = await startWorld();
  on = deliveryWorld(world);
});
beforeEach(async () => {
  await world.reset();
  factoryUid = world.aFactory();
});
afterAll(() => world.stop());

/** The pull request of GitHub's examples, in another spelling. */
const URL = "https://github.com/codertocat/hello-world/pull/2/";
const BOT = { login: "millwright[bot]", type: "Bot" };
const ADA = { login: "ada", type: "User" };
const at = (minutes: number): string =>
  new Date(Date.parse("2026-11-18T10:00:00Z") + minutes * 60_000).toISOString().replace(".000", "");
type Changes = Record<string, unknown>;

/** An event of the pull request, at a minute; by the platform unless a sender is named. */
const pullRequest = (action: string, minute: number, changes: Changes = {}): [string, Payload] => [
  "pull_request",
  githubExample("pull_request", action, {
    sender: BOT,
    "pull_request.created_at": at(0),
    "pull_request.updated_at": at(minute),
    ...changes,
  }),
];
const opened = (minute = 0, changes: Changes = {}) => pullRequest("opened", minute, changes);
const pushed = (after: string, minute: number, sender: object = BOT) =>
  pullRequest("synchronize", minute, { before: "aaa", after, sender });
const closed = (minute: number, changes: Changes = {}) =>
  pullRequest("closed", minute, { "pull_request.closed_at": at(minute), ...changes });
const merged = (minute: number, changes: Changes = {}) =>
  closed(minute, { "pull_request.merged": true, "pull_request.merged_at": at(minute), ...changes });
const review = (id: number, state: string, minute: number, changes: Changes = {}): [string, Payload] => [
  "pull_request_review",
  githubExample("pull_request_review", state === "dismissed" ? "dismissed" : "submitted", {
    "review.id": id,
    "review.state": state,
    "review.submitted_at": at(minute),
    "review.user": ADA,
    sender: ADA,
    "pull_request.html_url": "https://github.com/Codertocat/Hello-World/pull/2",
    "pull_request.number": 2,
    "repository.full_name": "Codertocat/Hello-World",
    "pull_request.created_at": at(0),
    "pull_request.updated_at": at(minute),
    "pull_request.draft": false,
    ...changes,
  }),
];
const comment = (id: number, minute: number, changes: Changes = {}): [string, Payload] => [
  "issue_comment",
  githubExample("issue_comment", "created", {
    "issue.number": 2,
    "issue.html_url": "https://github.com/Codertocat/Hello-World/pull/2",
    "issue.created_at": at(0),
    "issue.updated_at": at(minute),
    "issue.pull_request": { html_url: "https://github.com/Codertocat/Hello-World/pull/2", merged_at: null },
    "issue.draft": false,
    "comment.id": id,
    "comment.created_at": at(minute),
    "comment.user": ADA,
    sender: ADA,
    ...changes,
  }),
];
const reviewComment = (id: number, minute: number, changes: Changes = {}): [string, Payload] => [
  "pull_request_review_comment",
  githubExample("pull_request_review_comment", "created", {
    "pull_request.created_at": at(0),
    "pull_request.updated_at": at(minute),
    "comment.id": id,
    "comment.created_at": at(minute),
    "comment.user": ADA,
    ...changes,
  }),
];

async function recordOf(...deliveries: readonly [string, Payload][]) {
  await on.produced(factoryUid, URL);
  for (const [event, payload] of deliveries) on.github(event, payload);
  await on.settle();
  return on.record(factoryUid);
}
const NONE = {
  opened: 0,
  codePush: 0,
  reviewApproved: 0,
  reviewChangesRequested: 0,
  reviewCommented: 0,
  comment: 0,
  reviewComment: 0,
  prAction: 0,
  followUpMessage: 0,
  total: 0,
};
const countsOf = async (...deliveries: readonly [string, Payload][]) => {
  const { $typeName: _, ...counts } = (await recordOf(...deliveries)).humanInteractions!;
  return counts;
};

test("what the bot did is no person's if its login is known only later", async () => {
  world.webhookIngress.botLogin = "";
  expect(await countsOf(pushed("bbb", 1, ADA), comment(1, 2))).toMatchObject({ codePush: 1, comment: 1 });
  world.webhookIngress.botLogin = ADA.login;
  expect(await countsOf(pushed("bbb", 1, ADA), comment(1, 2))).toEqual(NONE);
});

describe("a person's", () => {
  test.each<[string, () => [string, Payload], Changes]>([
    ["opening counts as opened", () => opened(0, { sender: ADA }), { opened: 1 }],
    ["push counts as code_push", () => pushed("bbb", 1, ADA), { codePush: 1 }],
    ["approval counts as review_approved", () => review(1, "approved", 1), { reviewApproved: 1 }],
    [
      "request for changes counts as review_changes_requested",
      () => review(1, "changes_requested", 1),
      { reviewChangesRequested: 1 },
    ],
    ["review without a verdict counts as review_commented", () => review(1, "commented", 1), { reviewCommented: 1 }],
    ["comment in the conversation counts as comment", () => comment(1, 1), { comment: 1 }],
    ["comment on a line counts as review_comment", () => reviewComment(1, 1), { reviewComment: 1 }],
    ["closing counts as pr_action", () => closed(1, { sender: ADA }), { prAction: 1 }],
    ["merge counts as pr_action", () => merged(1, { sender: ADA }), { prAction: 1 }],
    ["reopening counts as pr_action", () => pullRequest("reopened", 1, { sender: ADA }), { prAction: 1 }],
    [
      "marking as ready counts as pr_action",
      () => pullRequest("ready_for_review", 1, { sender: ADA }),
      { prAction: 1 },
    ],
    [
      "conversion to a draft counts as pr_action",
      () => pullRequest("converted_to_draft", 1, { sender: ADA }),
      { prAction: 1 },
    ],
    ["label counts as nothing", () => pullRequest("labeled", 1, { sender: ADA }), {}],
  ])("%s", async (_, delivery, counted) => {
    const total = Object.keys(counted).length;
    expect(await countsOf(delivery())).toEqual({ ...NONE, ...counted, total });
  });
});

describe("is not taken as a person:", () => {
  test.each<[string, () => [string, Payload]]>([
    ["an account of the type Bot", () => comment(1, 1, { "comment.user": { login: "renovate", type: "Bot" } })],
    [
      "an account whose name ends in [bot]",
      () => comment(1, 1, { "comment.user": { login: "renovate[bot]", type: "User" } }),
    ],
    [
      "an app that acts for a person",
      () => comment(1, 1, { "comment.performed_via_github_app": { id: 7, slug: "helper" } }),
    ],
    [
      "the account under which the platform acts",
      () => comment(1, 1, { "comment.user": { login: "Millwright", type: "User" } }),
    ],
    ["a deleted account", () => comment(1, 1, { "comment.user": null })],
  ])("%s", async (_, delivery) => expect(await countsOf(delivery())).toEqual(NONE));
});

test("attributes a push to the user that triggered it, not to the author", async () => {
  const record = await recordOf(opened(), pushed("bbb", 1, ADA));
  expect([record.humanInteractions?.codePush, record.humanCodeChange, record.historyComplete]).toEqual([1, true, true]);
});

test("reports no code of persons if a bot opened it and only bots pushed", async () =>
  expect(await recordOf(opened(), pushed("bbb", 1), comment(1, 2))).toMatchObject({
    humanCodeChange: false,
    historyComplete: true,
  }));

test("does not know about code of persons if the opening was not observed", async () => {
  const record = await recordOf(pushed("bbb", 1), comment(1, 2));
  expect(record.humanCodeChange).toBeUndefined();
  expect(record.historyComplete).toBe(false);
});

test.each([
  ["after", false],
  ["before", true],
])("does not count a dismissed review, if the dismissal comes %s the review", async (_, isReversed) => {
  const deliveries = [review(1, "approved", 1), review(1, "dismissed", 2, { "review.submitted_at": at(1) })];
  const counts = await countsOf(
    ...(isReversed ? deliveries.toReversed() : deliveries),
    review(2, "changes_requested", 3),
  );
  expect(counts).toEqual({ ...NONE, reviewChangesRequested: 1, total: 1 });
});

test("takes the earliest review by a person as the first one, whatever its verdict", async () => {
  const byBot = review(1, "commented", 1, { "review.user": BOT });
  const record = await recordOf(opened(), review(3, "changes_requested", 30), review(2, "approved", 10), byBot);
  expect(record.firstHumanReviewAt).toMatchObject({ seconds: BigInt(Date.parse(at(10)) / 1000) });
  expect(record.cycleTime).toMatchObject({ prToFirstReview: 600 });
});

test("counts a follow-up that was sent as a comment once, as the comment, and others as follow-ups", async () => {
  await on.produced(factoryUid, URL, 2); // of the runs' own count, comments are left out
  expect(await countsOf(comment(1, 1))).toEqual({ ...NONE, comment: 1, followUpMessage: 2, total: 3 });
});

test("reports what the code host has: spelling, author, times, state and size", async () => {
  expect(
    await recordOf(
      opened(),
      merged(90, { "pull_request.additions": 30, "pull_request.commits": 4, "pull_request.title": "New title" }),
    ),
  ).toMatchObject({
    provider: "GITHUB",
    repoFullName: "Codertocat/Hello-World",
    prNumber: 2,
    url: "https://github.com/Codertocat/Hello-World/pull/2",
    title: "New title",
    authorLogin: "Codertocat",
    state: "merged",
    additions: 30,
    deletions: 1,
    changedFiles: 1,
    numCommits: 4,
    cycleTime: { kickoffToMerge: (Date.parse(at(90)) - Date.parse("2019-05-15T15:00:00Z")) / 1000 },
  });
});

test("has no time of closing on a merged pull request", async () => {
  const record = await recordOf(merged(5));
  expect([record.closedAt, record.state]).toEqual([undefined, "merged"]);
});

test("stores the newest state and the newest size independently", async () => {
  const record = await recordOf(
    pushed("bbb", 10),
    review(1, "commented", 20),
    opened(0, { "pull_request.additions": 99, "pull_request.draft": true }),
  );
  expect([record.state, record.additions, record.updatedAt]).toEqual([
    "open",
    1,
    expect.objectContaining({ seconds: BigInt(Date.parse(at(20)) / 1000) }),
  ]);
});

test("does not take a merge back when an older fact arrives", async () => {
  const record = await recordOf(merged(5), pullRequest("reopened", 4), comment(1, 6, { "issue.state": "open" }));
  expect([record.state, record.closedAt]).toEqual(["merged", undefined]);
});

test("stores facts of pull requests that no run has produced, and lists none of them", async () => {
  on.github(...merged(5, { sender: ADA }));
  await on.settle();
  expect(await world.rows("SELECT state, repo_full_name FROM pull_requests")).toEqual([
    { state: "merged", repo_full_name: "Codertocat/Hello-World" },
  ]);
  expect(await world.rows("SELECT FROM factory_pull_requests")).toEqual([]);
});

test("projects the pull request for every factory that produced it, and for no other team", async () => {
  const other = world.aFactory();
  await on.produced(factoryUid, URL);
  await on.produced(other, URL);
  world.webhookIngress.deliver({
    teamUid: OTHER_TEAM,
    provider: "github",
    event: "pull_request",
    action: "closed",
    body: closed(9)[1],
    receivedAt: NOW,
  });
  on.github(...opened());
  await on.settle();
  expect((await Promise.all([factoryUid, other].map(on.record))).map(({ state }) => state)).toEqual(["open", "open"]);
});

test("ignores unknown events, shapes and deliveries that are no longer stored", async () => {
  const items = [null, { number: "2", html_url: 7 }, { number: 2, html_url: "javascript:alert(1)" }];
  const shapes = [null, [], "text", 7, {}, ...items.map((item) => ({ pull_request: item }))];
  for (const shape of shapes) {
    for (const event of ["pull_request", "pull_request_review", "issue_comment"]) on.github(event, shape);
    on.gitlab("Merge Request Hook", { object_kind: "merge_request", object_attributes: shape });
  }
  on.github(
    "pull_request",
    pullRequest("closed", 1, {
      action: "celebrated",
      "pull_request.additions": -1,
      "pull_request.updated_at": "yesterday",
    })[1],
  );
  on.github("marketplace_purchase", { action: "purchased" });
  world.webhookIngress.deliveries.delete(on.github(...opened()));
  await on.settle();
  expect(await world.rows("SELECT FROM pull_requests")).toEqual([]);
});

test("stores texts that PostgreSQL refuses in a form that it takes", async () => {
  const record = await recordOf(opened(0, { "pull_request.title": "a\0b", sender: { login: "x\0y", type: "User" } }));
  expect([record.title, record.humanInteractions?.opened]).toEqual(["ab", 1]);
});

test("reads a delivery again until the webhook ingress responds", async () => {
  let failures = 1;
  world.webhookIngress.beforeGet = () => {
    if (failures-- > 0) throw new Error("not now");
  };
  await on.produced(factoryUid, URL);
  on.github(...opened());
  await world.settle();
  await world.service.work.drain();
  await world.rows("UPDATE stream.work_items SET due_at = now() - interval '1 second' WHERE state = 'waiting'");
  await on.settle();
  expect((await on.record(factoryUid)).historyComplete).toBe(true);
});

test("records the other deliveries of a batch if one cannot be, and gives up only that one", async () => {
  await on.produced(factoryUid, URL);
  on.github(...opened());
  const bad = on.github(...pushed("bbb", 5, ADA));
  on.github(...comment(1, 11));
  on.github(...merged(20));
  world.webhookIngress.beforeGet = (uid) => {
    if (uid === bad) throw new DomainError({ kind: "invalid_argument", reason: "bad", message: "Broken payload." });
  };
  await world.settle();
  await world.service.work.drain();
  expect(await world.rows("SELECT key, state FROM stream.work_items WHERE state <> 'done'")).toEqual([
    { key: bad, state: "dead_lettered" },
  ]);
  const { state, humanInteractions } = await on.record(factoryUid);
  expect([state, humanInteractions!.codePush, humanInteractions!.comment]).toEqual(["merged", 0, 1]);
});

test("reads payloads in several responses if one does not take them all", async () => {
  world.webhookIngress.batchMax = 2;
  for (let id = 1; id <= 5; id++) on.github(...comment(id, id));
  await on.settle();
  expect(await on.activities()).toHaveLength(5);
});

test("records deliveries of many pull requests and teams once, also by two replicas at the same time", async () => {
  const other = world.replica();
  const deliver = (number: number, teamUid: string) =>
    world.webhookIngress.deliver({
      ...{ teamUid, provider: "github", event: "pull_request", action: "closed", receivedAt: NOW },
      body: githubExample("pull_request", "closed", {
        "pull_request.number": number,
        "pull_request.html_url": `https://github.com/acme/shop-${number % 3}/pull/${number}`,
        "repository.full_name": `acme/shop-${number % 3}`,
        "pull_request.updated_at": at(number),
        "pull_request.closed_at": at(1440 * (number % 5)),
        "pull_request.merged_at": at(1440 * (number % 5)),
      }),
    });
  for (let number = 1; number <= 300; number++) {
    const uid = deliver(number, number % 2 === 0 ? TEAM : OTHER_TEAM);
    if (number % 4 === 0) world.webhookIngress.publish(uid);
  }
  await world.settle();
  await Promise.all([world.service.work.drain(), other.work.drain()]);
  await on.settle();
  const [counts] = await world.rows(
    "SELECT (SELECT count(*) FROM pull_requests) AS facts, (SELECT sum(merged)::integer FROM repository_merge_days) AS merged",
  );
  expect(counts).toEqual({ facts: 300, merged: 300 });
});

test("projects facts that are stored while a run that produced the pull request is being stored", async () => {
  const runUid = newUid();
  const key = urlKey(URL);
  let recording: Promise<void> | undefined;
  on.github(...opened());
  await world.t.database.transaction(async (tx) => {
    await lockFactories(tx, [factoryUid]);
    await tx.query(
      `INSERT INTO run_facts VALUES ($1, $2, $3, $1, NULL, $1, '2019-05-15T15:00:00Z', NULL, 1, 'SUCCEEDED', 'API', '', '', '', '', '', 'API', 'user', '', 0)`,
      [runUid, TEAM, factoryUid],
    );
    await tx.query(
      `INSERT INTO produced_pull_requests VALUES ($1, $2, $3, $4, $1, $5, 'GITHUB', 'acme/shop', 2, 'x', now(), now(), NULL, NULL, NULL, NULL)`,
      [runUid, key, TEAM, factoryUid, URL],
    );
    await projectPullRequests(tx, factoryUid, [key]);
    recording = on.settle();
    await eventually(async () => {
      const [waiting] = await world.rows<{ n: number }>(
        "SELECT count(*) AS n FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
      );
      expect(waiting!.n).toBeGreaterThan(0);
    });
  });
  await recording;
  expect((await on.record(factoryUid)).historyComplete).toBe(true);
});

describe("late, repeated and reordered deliveries", () => {
  const HISTORY: readonly [string, Payload][] = [
    opened(0, { "pull_request.draft": true }),
    pullRequest("labeled", 0, { "pull_request.draft": true }),
    pushed("bbb", 5),
    pushed("ccc", 6, ADA),
    pullRequest("ready_for_review", 8, { sender: ADA, "pull_request.additions": 20 }),
    review(1, "approved", 10),
    comment(1, 11),
    comment(2, 11, { "comment.user": BOT }),
    reviewComment(1, 12),
    review(1, "dismissed", 13, { "review.submitted_at": at(10) }),
    review(2, "changes_requested", 14),
    closed(15, { sender: ADA, "pull_request.additions": 25 }),
    pullRequest("reopened", 16, { sender: ADA, "pull_request.additions": 25 }),
    pushed("ddd", 17),
    review(3, "approved", 18, { "review.user": { login: "grace", type: "User" } }),
    merged(20, { sender: ADA, "pull_request.additions": 31 }),
    comment(3, 25, { "issue.state": "closed", "issue.pull_request.merged_at": at(20) }),
  ];
  const seed = Number(process.env["SEED"] ?? Math.trunc(Math.random() * 2 ** 31));

  /** What is stored, apart from the run, which differs. */
  const stored = async () => ({
    facts: await world.rows("SELECT to_jsonb(p) - 'recorded_at' AS facts FROM pull_requests p ORDER BY url_key"),
    activities: await world.rows("SELECT * FROM pull_request_activities ORDER BY activity_key"),
    records: await world.rows(
      `SELECT state, title, author_login, opened_at, first_human_review_at, merged_at, closed_at, updated_at, additions, num_commits, history_complete,
              human_code_change, human_interactions, has_host_facts FROM factory_pull_requests`,
    ),
  });

  test(`end in the same record, whether all are delivered or only a part yet (SEED=${seed})`, async () => {
    const random = seededRandom(seed);
    for (const length of [HISTORY.length, HISTORY.length, 13, 9]) {
      const history = HISTORY.slice(0, length);
      const runs: (readonly [string, Payload])[][] = [history.map((each) => each)];
      for (let n = 0; n < 3; n++) runs.push(random.shuffled([...history, ...history.filter(() => random.chance(0.3))]));
      const outcomes = [];
      for (const deliveries of runs) {
        await world.reset();
        factoryUid = world.aFactory();
        const produceAt = random.below(deliveries.length); // a run may name it late
        for (const [n, [event, payload]] of deliveries.entries()) {
          if (n === produceAt) await on.produced(factoryUid, URL);
          on.github(event, payload);
          if (random.chance(0.5)) await on.settle();
        }
        on.github(...deliveries.at(-1)!);
        await on.settle();
        outcomes.push(await stored());
      }
      expect(outcomes[0]!.records).toHaveLength(1);
      for (const outcome of outcomes.slice(1)) expect(outcome).toEqual(outcomes[0]);
    }
  });

  test("count in the end what happened, once", async () => {
    const record = await recordOf(...HISTORY, ...HISTORY);
    const { $typeName: _, ...counts } = record.humanInteractions!;
    expect(counts).toEqual({
      opened: 0,
      codePush: 1,
      reviewApproved: 1,
      reviewChangesRequested: 1,
      reviewCommented: 0,
      comment: 2,
      reviewComment: 1,
      prAction: 4,
      followUpMessage: 0,
      total: 10,
    });
    expect(record).toMatchObject({ state: "merged", additions: 31, humanCodeChange: true, historyComplete: true });
  });
});

test("responses are complete up to the oldest delivery that is accepted and not recorded", async () => {
  const asOf = async () =>
    timestampDate((await world.metrics.listPullRequests({ factoryUid }, call(OWNER))).scope!.asOf!);
  await on.settle();
  world.clock.advance(60_000);
  const receivedAt = new Date(NOW.getTime() + 20_000);
  on.github(...opened(), receivedAt);
  expect(await asOf()).toEqual(NOW); // the feed was not read since
  for (const consumer of world.service.consumers) await consumer.drain();
  expect(await asOf()).toEqual(receivedAt);
  await on.settle();
  expect(await asOf()).toEqual(world.clock.now());
});
