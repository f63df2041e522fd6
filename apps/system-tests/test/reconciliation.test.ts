import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { sign as signForGitHub } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Database } from "@millwright/database";
import { eventually } from "@millwright/testing";
import type { Cluster } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { RUN_TIMEOUT_MS } from "./support/runs.ts";
import { aCodeHost, aFactory, definitionFiles, teamOf, type CodeHost } from "./support/resources.ts";

const BOT = { login: "mill[bot]", type: "Bot" };
const ADA = { login: "ada", type: "User" };
const REPOSITORY = { full_name: "acme/shop" };
const minutesAgo = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();
const [OPENED_AT, PUSHED_AT, REVIEWED_AT, MERGED_AT] = [40, 30, 20, 10].map(minutesAgo);

const pullRequest = (number: number, user: object, more: object = {}) => ({
  ...{ number, user, title: `Change ${number}`, html_url: `https://github.com/acme/shop/pull/${number}` },
  ...{ state: "closed", draft: false, created_at: OPENED_AT, updated_at: MERGED_AT, closed_at: MERGED_AT },
  ...{ merged_at: MERGED_AT, additions: 12, deletions: 3, changed_files: 2, commits: 2 },
  ...{ base: { ref: "main", repo: REPOSITORY }, head: { ref: "work", repo: REPOSITORY } },
  ...more,
});
const asIssue = (pull: ReturnType<typeof pullRequest>) => ({
  ...pull,
  pull_request: { html_url: pull.html_url, merged_at: pull.merged_at },
});
/** The first was opened by a run, the second by a person. */
const PULLS = [pullRequest(1, BOT), pullRequest(2, ADA)];
const REST: Readonly<Record<string, unknown>> = {
  "/repos/acme/shop/issues": PULLS.map(asIssue),
  "/repos/acme/shop/pulls/1": PULLS[0],
  "/repos/acme/shop/pulls/1/reviews": [{ id: 11, user: ADA, state: "APPROVED", submitted_at: REVIEWED_AT }],
  "/repos/acme/shop/pulls/1/comments": [],
  "/repos/acme/shop/issues/1/comments": [{ id: 12, user: ADA, created_at: REVIEWED_AT }],
  "/repos/acme/shop/issues/1/events": [{ id: 13, event: "closed", actor: ADA, created_at: MERGED_AT }],
  "/repos/acme/shop/activity": [
    { id: 14, before: "a", after: "b", activity_type: "push", actor: BOT, timestamp: PUSHED_AT },
  ],
};

let forge: Server;
let platform: Cluster;
let api: Client;
let factory: string;
let codeHost: CodeHost;

beforeAll(async () => {
  forge = createServer((request, response) => {
    const body = REST[new URL(request.url ?? "/", "http://forge.test").pathname];
    response.setHeader("content-type", "application/json").writeHead(body === undefined ? 404 : 200);
    response.end(JSON.stringify(body ?? {}));
  });
  await new Promise<void>((resolve) => forge.listen(0, "127.0.0.1", resolve));
  platform = (await startPlatform({ workers: 0 }, "processes")) as Cluster;
  api = await connect(platform);
  codeHost = await aCodeHost(api, "github", {
    base_url: `http://127.0.0.1:${(forge.address() as AddressInfo).port}`,
    owners: ["acme"],
    webhook: { bot_login: "mill" },
  });
  const [file, ...agents] = definitionFiles("No script here.");
  const content = file!.content.replace("[]", "\n  - owner: acme\n    name: shop");
  factory = await aFactory(api, [{ ...file!, content }, ...agents]);
});
afterAll(async () => {
  await platform?.remove();
  forge?.close().closeAllConnections();
});

/** Stores a run that produced the first pull request, as the metrics service does. */
async function storeRun(): Promise<void> {
  const database = Database.open(platform.databaseUrl("metrics"), { max: 1, applicationName: "system tests" });
  try {
    const [runUid, team] = [randomUUID(), await teamOf(api)];
    await database.sql.query(
      `INSERT INTO run_facts (run_uid, team_uid, factory_uid, root_run_uid, conversation_uid, created_at, finished_at,
                              version, state, source, agent_uid, agent_name, agent_type, model_id, harness,
                              root_source, creator_type, creator_uid, person_follow_ups)
       VALUES ($1, $2, $3, $1, $1, $4, $4, 1, 'SUCCEEDED', 'API', '', '', '', '', '', 'API', 'user', '', 0)`,
      [runUid, team, factory, OPENED_AT],
    );
    await database.sql.query(
      `INSERT INTO produced_pull_requests (run_uid, url_key, team_uid, factory_uid, root_run_uid, url, provider,
                                           repo_full_name, pr_number, title, created_at, run_created_at)
       VALUES ($1, 'github.com/acme/shop/pull/1', $2, $3, $1, $4, 'GITHUB', 'acme/shop', 1, 'Change 1', $5, $5)`,
      [runUid, team, factory, PULLS[0]!.html_url, OPENED_AT],
    );
  } finally {
    await database.close();
  }
}

async function deliverOpening(): Promise<void> {
  const open = { state: "open", updated_at: OPENED_AT, closed_at: null, merged_at: null };
  const opened = { action: "opened", pull_request: pullRequest(1, BOT, open), repository: REPOSITORY, sender: BOT };
  const body = JSON.stringify(opened);
  const headers = {
    "content-type": "application/json",
    "x-github-event": "pull_request",
    "x-github-delivery": randomUUID(),
    "x-hub-signature-256": await signForGitHub(codeHost.secret, body),
  };
  expect((await api.fetch(codeHost.url, { method: "POST", headers, body })).status).toBe(202);
}

test("pull requests and metrics show what the code host never delivered", async () => {
  await deliverOpening();
  await storeRun();
  // The list of the repository reports the merge; the review follows when the pull request itself is read.
  const [record] = await eventually(
    async () => {
      const { data } = await api.get(`/factory/${factory}/pull-requests?state=merged`);
      return data.length === 1 && data[0].first_human_review_at !== null && data;
    },
    { timeoutMs: RUN_TIMEOUT_MS, everyMs: 2_000 },
  );
  expect(record.history_complete).toBe(true);
  expect(record).toMatchObject({
    ...{ pr_number: 1, title: "Change 1", author_login: "mill[bot]", additions: 12, merged_at: MERGED_AT },
    ...{ first_human_review_at: REVIEWED_AT, human_code_change: false },
    human_interactions: { opened: 0, code_push: 0, review_approved: 1, comment: 1, pr_action: 1, total: 3 },
  });
  const funnel = await eventually(
    async () => {
      const read = (await api.get(`/factory/${factory}/metrics`)).autonomy_funnel;
      return read.total_merged === 2 && read;
    },
    { timeoutMs: RUN_TIMEOUT_MS, everyMs: 2_000 },
  );
  expect(funnel).toMatchObject({
    ...{ factory_merged: 1, factory_merged_observed: 1, merged_without_human_code_change: 1 },
    repos: ["acme/shop"],
  });
});
