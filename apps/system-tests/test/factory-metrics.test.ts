import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { sign as signForGitHub } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { eventually, ModelServer, type ModelAnswer } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { bareRepository, git } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { onDeployments, startPlatform } from "./support/deployment.ts";
import { RUN_TIMEOUT_MS, script, spawn, succeeded } from "./support/runs.ts";
import { aCodeHost, aFactory, aTeam, definitionFiles, teamOf } from "./support/resources.ts";

/** Costs 1,000 input tokens at $4 and 200 output tokens at $20 per million. */
const ANSWER: ModelAnswer = { text: "The price is nine.", usage: { input: 1_000, output: 200 } };
const COST_USD = 0.008;
const MODEL = "claude-opus-5-5";

const merged = (number: number): string =>
  JSON.stringify({
    action: "closed",
    number,
    pull_request: {
      number,
      html_url: `https://github.com/acme/shop/pull/${number}`,
      title: "By a person",
      state: "closed",
      draft: false,
      merged: true,
      user: { login: "ada", type: "User" },
      created_at: "2026-01-02T00:00:00Z",
      updated_at: new Date().toISOString(),
      closed_at: new Date().toISOString(),
      merged_at: new Date().toISOString(),
      additions: 3,
      deletions: 1,
      changed_files: 1,
      commits: 1,
      base: { ref: "main", repo: { full_name: "acme/shop" } },
      head: { ref: "fix" },
    },
    repository: { full_name: "acme/shop", html_url: "https://github.com/acme/shop" },
    sender: { login: "ada", type: "User" },
  });

onDeployments(["standalone", "processes"], (deployment) => {
  let models: ModelServer;
  let platform: Deployment;
  let api: Client;
  let factory: string;
  let root: any;

  const of = (path: string): Promise<any> => api.get(`/factory/${factory}${path}`);

  /** A run tree: the root's script opens a pull request, and a priced model executes the child. */
  beforeAll(async () => {
    models = await ModelServer.start(() => ANSWER);
    platform = await startPlatform({ env: { ANTHROPIC_API_KEY: "key", ANTHROPIC_BASE_URL: models.url } }, deployment);
    api = await connect(platform);
    const repositories = platform.path("repositories");
    bareRepository(repositories, "acme", "shop", { "price.txt": "ten\n" });
    await api.post(`/team/${await teamOf(api)}/code-hosts`, {
      name: "local",
      kind: "local",
      root: repositories,
      owners: ["acme"],
    });
    const [file, foreman, helper] = definitionFiles("No script here.", "No script here.");
    const files = [
      {
        ...file!,
        content: file!.content
          .replace("[]", "\n  - owner: acme\n    name: shop")
          .replace("model: auto", "model: scripted"),
      },
      foreman!,
      { ...helper!, content: helper!.content.replace("agentType: IMPLEMENT", `agentType: IMPLEMENT\nmodel: ${MODEL}`) },
    ];
    factory = await aFactory(api, files);
    const steps = [
      spawn("Say the price.", "helper"),
      "wait: all",
      "write: {path: price.txt, content: nine}",
      "pull_request: {title: Lower the price}",
    ];
    const { run_id: runId } = await api.post(`/factory/${factory}/runs`, { prompt: script(...steps) });
    root = await succeeded(api, runId);
  });
  afterAll(async () => {
    await platform?.remove();
    await models?.stop();
  });

  /** Waits until the metrics contain the costs of the whole tree. */
  const shown = (): Promise<any> =>
    eventually(
      async () => {
        const costs = await of("/costs/per-pr");
        return costs.dollars.total === COST_USD && costs;
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    );

  test("the cost of a pull request includes the spend of the whole run tree", async () => {
    expect(await shown()).toMatchObject({
      pr_count: 1,
      dollars: { inference: COST_USD, compute: 0, platform: 0, total: COST_USD },
      mean: COST_USD,
    });
    const { data } = await of("/costs/per-pr/top");
    expect(data).toMatchObject([
      {
        url: expect.any(String),
        dollars: { total: COST_USD },
        models: [{ model_id: MODEL, dollars: COST_USD, share: 1 }],
        source: root.source,
      },
    ]);
  });

  test("every grouping of the spend has the same total", async () => {
    await shown();
    for (const groupBy of ["source", "user", "agent", "model"]) {
      const { total, groups } = await of(`/costs/breakdown?group_by=${groupBy}`);
      expect([groupBy, total.total, groups.map(({ dollars }: any) => dollars.total)]).toEqual([
        groupBy,
        COST_USD,
        [COST_USD],
      ]);
    }
    expect((await of("/costs/breakdown?group_by=model")).groups[0].key).toBe(MODEL);
    expect((await of("/costs/breakdown?group_by=agent")).groups[0]).toMatchObject({ label: "helper", deleted: false });
    const { principal } = await api.get("/whoami");
    const [user] = (await of("/costs/breakdown?group_by=user")).groups;
    expect(user).toMatchObject({ key: principal.uid, deleted: false });
    expect([principal.display_name, principal.email]).toContain(user.label);
  });

  test("runs and pull requests are counted", async () => {
    await shown();
    const metrics = await eventually(
      async () => {
        const read = await of("/metrics?group_by_period=day");
        return read.run_count.total === 2 && read.pr_count.total === 1 && read;
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    expect(metrics).toMatchObject({ factory_uid: factory, team_uid: await teamOf(api), group_by_period: "day" });
    expect(metrics.run_count.series).toHaveLength(metrics.period_list.length);
    expect(metrics.run_count.series.at(-1) + metrics.run_count.series.at(-2)).toBe(2);
    expect(metrics).not.toHaveProperty("cost_per_pr");
    const types = await eventually(
      async () => {
        const { groups } = await of("/metrics/run-breakdown?group_by=agent_type");
        return groups.length === 2 && groups;
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    expect(types.map(({ key, total }: any) => [key, total])).toEqual([
      ["FOREMAN", 1],
      ["IMPLEMENT", 1],
    ]);
    const { data } = await of("/pull-requests?repo=ACME/Shop&state=open");
    expect(data).toMatchObject([
      {
        repo_full_name: "acme/shop",
        pr_number: 1,
        state: "open",
        title: "Lower the price",
        runs: [{ run_id: root.run_id, root_run_id: root.run_id }],
      },
    ]);
  });

  test("a merge that a code host reports is counted, whoever merged it", async () => {
    const { url, secret } = await aCodeHost(api, "github");
    const body = merged(99);
    const headers = {
      "content-type": "application/json",
      "x-github-event": "pull_request",
      "x-github-delivery": randomUUID(),
      "x-hub-signature-256": await signForGitHub(secret, body),
    };
    expect((await api.fetch(url, { method: "POST", headers, body })).status).toBe(202);
    const funnel = await eventually(
      async () => {
        const read = (await of("/metrics")).autonomy_funnel;
        return read.total_merged === 1 && read;
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    expect(funnel).toMatchObject({
      factory_merged: 0,
      factory_merged_observed: 0,
      merged_without_human_code_change: 0,
      repos: ["acme/shop"],
    });
  });

  test("another team reads nothing, and the factory is indistinguishable from an unknown one", async () => {
    const stranger = await aTeam(api, "strangers");
    const problemOf = async (uid: string) => {
      const { status, body } = await stranger.call("GET", `/factory/${uid}/metrics`, { isAbsent: true });
      return [status, body.error_code, body.reason];
    };
    expect(await problemOf(factory)).toEqual([404, "resource_not_found", "factory_not_found"]);
    expect(await problemOf(randomUUID())).toEqual([404, "resource_not_found", "factory_not_found"]);
  });

  test("a platform that was killed returns the same responses", async () => {
    await shown();
    const read = async () => {
      const { data } = await of("/costs/per-pr/top");
      const { groups } = await of("/costs/breakdown?group_by=user");
      return JSON.stringify([data, groups]);
    };
    const before = await read();
    await platform.killEverything();
    await platform.start();
    const again = await eventually(
      async () => {
        const { status } = await api.call("GET", `/factory/${factory}/costs/per-pr`);
        return status === 200 && read();
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    expect(again).toBe(before);
  });

  test("a local pull request is merged when a person merges its branch", async () => {
    const bare = join(platform.path("repositories"), "acme", "shop.git");
    git(bare, "update-ref", "refs/heads/main", git(bare, "rev-parse", `agent/${root.run_id}`).trim());
    const [record] = await eventually(
      async () => {
        const { data } = await of("/pull-requests?state=merged");
        return data.length === 1 && data;
      },
      { timeoutMs: RUN_TIMEOUT_MS, everyMs: 2_000 }, // below the limit of 60 requests per minute
    );
    expect(record).toMatchObject({ title: "Lower the price", human_code_change: false, history_complete: true });
    const { autonomy_funnel: funnel } = await eventually(() => of("/metrics"), { everyMs: 2_000 });
    expect(funnel).toMatchObject({ factory_merged: 1, factory_merged_observed: 1 });
  });
});
