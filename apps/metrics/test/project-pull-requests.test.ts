import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { urlKey } from "../src/domain/url-key.ts";
import { lockFactories } from "../src/store/factory-lock.ts";
import { projectPullRequests } from "../src/store/project-pull-requests.ts";
import { startWorld, TEAM, type World } from "./setup.ts";

let world: World;
const at = { factoryUid: "" };
beforeAll(async () => void (world = await startWorld()));
beforeEach(async () => {
  await world.reset();
  at.factoryUid = world.aFactory();
});
afterAll(() => world.stop());

const URL = "https://github.com/Acme/Shop/pull/7";
const KEY = urlKey(URL);

async function aProducer({
  provider = "GITHUB",
  createdAt = "2026-11-18T10:00:00Z",
  runCreatedAt = "2026-11-18T09:00:00Z",
  followUps = 0,
  additions = null as number | null,
} = {}): Promise<string> {
  const runUid = newUid();
  await world.rows(
    `INSERT INTO run_facts VALUES ($1, $2, $3, $1, NULL, $1, $4, NULL, 1, 'SUCCEEDED', 'API', '', '', '', '', '', 'API', 'user', '', $5)`,
    [runUid, TEAM, at.factoryUid, runCreatedAt, followUps],
  );
  await world.rows(
    `INSERT INTO produced_pull_requests VALUES ($1, $2, $3, $4, $1, $5, $6, 'Acme/Shop', 7, 'Fix the build', $7, $8, $9, NULL, NULL, NULL)`,
    [runUid, KEY, TEAM, at.factoryUid, URL, provider, createdAt, runCreatedAt, additions],
  );
  return runUid;
}

const reported = (openedAt: string | null = "2026-11-18T10:00:00Z") =>
  world.rows(
    `INSERT INTO pull_requests (team_uid, url_key, url, provider, repo_full_name, pr_number, title, author_login, state, opened_at, updated_at)
     VALUES ($1, $2, $3, 'GITHUB', 'Acme/Shop', 7, 'Fix it', 'bot', 'open', $4, '2026-11-19T10:00:00Z')`,
    [TEAM, KEY, URL, openedAt],
  );

const activity = (kind: string, { isPerson = true, isDismissed = false, occurredAt = "2026-11-18T12:00:00Z" } = {}) =>
  world.rows(
    `INSERT INTO pull_request_activities
            (team_uid, url_key, activity_key, kind, actor_login, is_person, is_dismissed, occurred_at)
     VALUES ($1, $2, $3, $4, 'someone', $5, $6, $7)`,
    [TEAM, KEY, newUid(), kind, isPerson, isDismissed, occurredAt],
  );

async function project(): Promise<Record<string, unknown> | undefined> {
  await world.t.database.transaction(async (tx) => {
    await lockFactories(tx, [at.factoryUid]);
    await projectPullRequests(tx, at.factoryUid, [KEY]);
  });
  return (await world.rows("SELECT * FROM factory_pull_requests"))[0];
}

test("makes no row of a pull request that no run of the factory produced", async () => {
  await reported();
  expect(await project()).toBeUndefined();
});

test("leaves unknown what only a code host reports", async () => {
  const runUid = await aProducer();
  expect(await project()).toMatchObject({
    url: URL,
    provider: "GITHUB",
    repo_full_name: "Acme/Shop",
    pr_number: 7,
    title: "Fix the build",
    author_login: null,
    state: "open",
    has_host_facts: false,
    opened_at: null,
    history_complete: false,
    human_code_change: null,
    human_interactions: null,
    human_total: null,
    kickoff_run_uid: runUid,
    runs: [{ run_id: runUid, root_run_id: runUid, created_at: "2026-11-18T09:00:00.000Z" }],
    inference_micros: 0,
  });
});

test("takes a local pull request as opened when it was made, with complete history and no code of persons", async () => {
  await aProducer({ provider: "LOCAL", additions: 12, followUps: 2 });
  expect(await project()).toMatchObject({
    state: "open",
    opened_at: new Date("2026-11-18T10:00:00Z"),
    history_complete: true,
    human_code_change: false,
    additions: 12,
    human_total: 2,
    human_interactions: { opened: 0, follow_up_message: 2, total: 2 },
  });
});

test("counts what persons did and follow-ups of the producing runs, without dismissed reviews", async () => {
  await aProducer({ followUps: 1 });
  await aProducer({ followUps: 2 });
  await reported();
  await activity("opened", { isPerson: false });
  await activity("comment");
  await activity("comment");
  await activity("comment", { isPerson: false });
  await activity("pr_action");
  await activity("review_approved", { isDismissed: true, occurredAt: "2026-11-18T11:00:00Z" });
  await activity("review_commented", { isPerson: false, occurredAt: "2026-11-18T11:30:00Z" });
  await activity("review_changes_requested", { occurredAt: "2026-11-18T12:30:00Z" });
  expect(await project()).toMatchObject({
    has_host_facts: true,
    title: "Fix it",
    history_complete: true,
    human_code_change: false,
    first_human_review_at: new Date("2026-11-18T12:30:00Z"),
    human_total: 7,
    human_interactions: {
      opened: 0,
      code_push: 0,
      review_approved: 0,
      review_changes_requested: 1,
      review_commented: 0,
      comment: 2,
      review_comment: 0,
      pr_action: 1,
      follow_up_message: 3,
      total: 7,
    },
  });
});

test.each([
  ["unknown while the opening was not seen", [], null],
  ["true for a person's push even without the opening", [["code_push", true]], true],
  ["true for a person's opening", [["opened", true]], true],
  [
    "false for pushes of programs",
    [
      ["opened", false],
      ["code_push", false],
    ],
    false,
  ],
] as const)("human_code_change is %s", async (_, activities, expected) => {
  await aProducer();
  await reported();
  for (const [kind, isPerson] of activities) await activity(kind, { isPerson });
  expect(await project()).toMatchObject({ human_code_change: expected });
});

test("starts with the earliest run, is first seen with the earliest artifact and adds up the shares of trees", async () => {
  const late = await aProducer({
    runCreatedAt: "2026-11-18T09:30:00Z",
    createdAt: "2026-11-18T09:40:00Z",
    additions: 5,
  });
  const early = await aProducer({ runCreatedAt: "2026-11-18T08:00:00Z", createdAt: "2026-11-18T11:00:00Z" });
  for (const root of [late, early])
    await world.rows("INSERT INTO pull_request_shares VALUES ($1, $2, $3, 10, 20, 30)", [at.factoryUid, KEY, root]);
  await project();
  expect(await project()).toMatchObject({
    kickoff_run_uid: early,
    kickoff_at: new Date("2026-11-18T08:00:00Z"),
    first_seen_at: new Date("2026-11-18T09:40:00Z"),
    additions: 5,
    runs: [{ run_id: early }, { run_id: late }],
    inference_micros: 20,
    compute_micros: 40,
    platform_micros: 60,
  });
});
