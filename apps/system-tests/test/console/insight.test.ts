import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Download } from "playwright-core";
import { bareRepository } from "@millwright/test-platform";
import { eventually, ModelServer } from "@millwright/testing";
import { runnerUidOf } from "@millwright/ids";
import {
  ConsoleSession,
  expectAccessible,
  expectFits,
  inBrowser,
  signIn,
  type ConsolePage,
} from "../support/browser.ts";
import type { Client } from "../support/client.ts";
import { SLOW_MS } from "../support/deployment.ts";
import { RUN_TIMEOUT_MS, script, spawn, succeeded } from "../support/runs.ts";
import { aFactory, definitionFiles, teamOf } from "../support/resources.ts";

const MODEL = "claude-opus-5-5";
const RULE = { checks: [{ kind: "regex", target: "final_message", pattern: "." }], pass: "pass", fail: "fail" };

/** Two runners that differ in their names only. */
const RUNNERS = ["small", "large"].map((name) => ({
  path: `runners/${name}.yaml`,
  content: "platform:\n  linux:\n    dockerImage: debian\n",
}));

inBrowser("metrics, costs, budgets, scorers and benchmarks", () => {
  let models: ModelServer;
  let session: ConsoleSession;
  let api: Client;
  let page: ConsolePage;
  let factory: string;
  /** A factory of its own, so that judges and trials are in no metric of the other one. */
  let judged: string;
  let scorer: string;

  /** One run tree: the root's script opens a pull request with a hostile title; a priced model executes the child. */
  beforeAll(async () => {
    models = await ModelServer.start(() => ({ text: "Nine.", usage: { input: 1_000, output: 200 } }));
    session = await ConsoleSession.start({ env: { ANTHROPIC_API_KEY: "key", ANTHROPIC_BASE_URL: models.url } });
    ({ api } = session);
    const root = session.platform.path("repositories");
    bareRepository(root, "acme", "shop", { "price.txt": "ten\n" });
    await api.post(`/team/${await teamOf(api)}/code-hosts`, { name: "local", kind: "local", root, owners: ["acme"] });
    const [file, foreman, helper] = definitionFiles("No script here.", "No script here.");
    const withRepository = file!.content.replace("[]", "\n  - owner: acme\n    name: shop");
    factory = await aFactory(api, [
      { ...file!, content: withRepository.replace("model: auto", "model: scripted") },
      foreman!,
      { ...helper!, content: helper!.content.replace("agentType: IMPLEMENT", `agentType: IMPLEMENT\nmodel: ${MODEL}`) },
    ]);
    const prompt = script(
      spawn("Say the price.", "helper"),
      "wait: all",
      "write: {path: price.txt, content: nine}",
      'pull_request: {title: "Lower <b>the</b> price"}',
    );
    await succeeded(api, (await api.post(`/factory/${factory}/runs`, { prompt })).run_id);
    judged = await aFactory(api, [...definitionFiles(script("say: Done.")), ...RUNNERS], { name: "Judged" });
    ({ uid: scorer } = await api.post(`/factory/${judged}/scorers`, {
      name: "Answers <i>well</i>",
      scope_mode: "all_agents",
      allowed_classifications: [
        { value: "pass", score: 1 },
        { value: "fail", score: 0 },
      ],
      threshold: 0.5,
      sampling_rate: 0,
      rule: RULE,
    }));
    const { run_id: run } = await api.post(`/factory/${judged}/runs`, { prompt: script("say: Done.") });
    await succeeded(api, run);
    await api.post(`/factory/${judged}/scorers/${scorer}/dispatch`, { run_ids: [run] });
    const { agents } = await api.get(`/agent/identities?factory_uid=${judged}`);
    await api.post(`/factory/${judged}/benchmarks`, {
      name: "Core",
      agent_uid: agents.find(({ name }: any) => name === "helper").uid,
      factory_agent_type: "helper",
      configurations: [
        {
          role: "baseline",
          display_name: "Today",
          model: "scripted",
          runner_id: runnerUidOf(judged, "small"),
        },
        {
          role: "candidate",
          display_name: "Tomorrow",
          model: "scripted",
          runner_id: runnerUidOf(judged, "large"),
        },
      ],
      tasks: [{ title: "Answer", prompt: script("say: Done."), success_criteria: "There is an answer.", rule: RULE }],
    });
    await eventually(async () => (await api.get(`/factory/${factory}/costs/per-pr`)).dollars.total > 0, {
      timeoutMs: RUN_TIMEOUT_MS,
    });
    page = await session.newPage();
  }, SLOW_MS);
  afterAll(async () => {
    await session?.remove();
    await models?.stop();
  });

  /** Returns the text of the file that a button saves. */
  const saved = async (button: string): Promise<string> => {
    const download = new Promise<Download>((resolve) => void page.once("download", resolve));
    await page.getByRole("button", { name: button }).click();
    return readFile(await (await download).path(), "utf8");
  };

  test("metrics have the runs of the range in a chart, its table and its CSV", async () => {
    await signIn(page, `/activity?factory=${factory}`);
    await page.getByRole("img", { name: "Runs. The table has the numbers.", exact: true }).waitFor();
    expect((await saved("Save “Runs” as CSV")).trim().split("\r\n").at(0)).toBe("Period,Runs");
    const rows = (await saved("Save “Runs” as CSV")).trim().split("\r\n").slice(1);
    expect(rows.reduce((sum, row) => sum + Number(row.split(",")[1]), 0)).toBe(2);
    await page.locator("details").first().locator("summary").click();
    expect(await page.getByRole("table", { name: "Runs: table" }).getByRole("row").count()).toBe(rows.length + 1);
    await expectAccessible(page);
  });

  test("the range, the periods and the breakdown are in the URL", async () => {
    await page.getByLabel("Period").selectOption("month");
    await page.getByLabel("Runs by").selectOption("model");
    await page.getByLabel("From (UTC)").fill("2026-01-01");
    await page.waitForURL((url) => url.searchParams.get("from") === "2026-01-01");
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      factory,
      period: "month",
      by: "model",
      from: "2026-01-01",
    });
    await page.reload();
    await page.getByRole("img", { name: "Breakdown of runs. The table has the numbers." }).waitFor();
    expect(await saved("Save “Breakdown of runs” as CSV")).toContain(`${MODEL},1\r\n`);
  });

  test("a range that the API refuses shows its message and request id", async () => {
    await page.goto(`/activity?factory=${factory}&from=2020-01-01`);
    await page.getByText(/365/).first().waitFor();
    expect(await page.getByRole("alert").first().textContent()).toContain("request");
  });

  test("costs name the costliest pull request and the spend by model", async () => {
    await page.goto(`/costs?factory=${factory}&by=model`);
    await page.getByRole("link", { name: "Lower <b>the</b> price" }).waitFor();
    await page.getByRole("img", { name: "Spend. The table has the numbers." }).waitFor();
    expect(await saved("Save “Spend” as CSV")).toContain(`${MODEL},0.008,0,0`);
    expect(await saved("Save “Costliest pull requests” as CSV")).toContain("Lower <b>the</b> price");
    await expectAccessible(page);
    await expectFits(page, 400);
    await page.getByLabel("Range").selectOption("Last week");
    await page.waitForURL((url) => url.searchParams.has("before"));
    const { from, before } = Object.fromEntries(new URL(page.url()).searchParams);
    expect([new Date(from!).getUTCDay(), Date.parse(before!) - Date.parse(from!)]).toEqual([0, 7 * 86_400_000]);
    await page.getByText(new RegExp(`^${from} to the end of `)).waitFor();
  });

  test("pull requests are filtered by state, and an empty list states what to do", async () => {
    await page.goto(`/pull-requests?factory=${factory}`);
    await page.getByRole("link", { name: "Lower <b>the</b> price" }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "State" }).click();
    await page.getByRole("menuitemcheckbox", { name: "closed" }).click();
    await page.getByText("No pull request matches the filters").waitFor();
    expect(new URL(page.url()).searchParams.get("state")).toBe("closed");
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("link", { name: "Lower <b>the</b> price" }).waitFor();
  });

  test("a budget of the factory is created, changed and deleted", async () => {
    await page.goto("/budgets");
    await page.getByText("No budgets yet").waitFor();
    await page.getByRole("button", { name: "Create budget" }).click();
    await page.getByLabel("Covers the runs of a").selectOption("factory");
    await page.getByLabel(/^Factory/).selectOption(factory);
    await page.getByLabel("Limit in US dollars").fill("20");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("cell", { name: "$20.00" }).waitFor();
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByLabel("Limit in US dollars").fill("30");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("cell", { name: "$30.00" }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No budgets yet").waitFor();
    expect(page.problems).toEqual([]);
  });

  test("a scorer is created with a rubric, and judges chosen runs", async () => {
    await page.goto(`/scorers?factory=${judged}`);
    await page.getByRole("button", { name: "Create scorer" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Politeness");
    await page
      .getByRole("dialog")
      .getByLabel(/^Rubric/)
      .fill("Is the answer polite?");
    await page
      .getByRole("dialog")
      .getByLabel(/^Labels/)
      .fill("polite: 1");
    await page.getByText("is not a label with its score").waitFor();
    await page
      .getByRole("dialog")
      .getByLabel(/^Labels/)
      .fill("polite = 1\nrude = 0");
    await page.getByRole("dialog").getByLabel("Percent of finished runs").fill("0");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { name: "Politeness" }).waitFor();
    await page.getByText("polite (1), rude (0)").waitFor();
    await page.getByRole("button", { name: "Judge runs" }).click();
    await page.getByRole("dialog").getByRole("checkbox").first().check();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Judge 1 run" }).click();
    await page.getByText("1 of 1 runs are being judged.").waitFor();
    expect(page.problems).toEqual([]);
  });

  test("a scorer has its pass rate over time and its results with a link to the run", async () => {
    await page.goto(`/scorers?factory=${judged}`);
    await page.getByRole("link", { name: "Answers <i>well</i>" }).click();
    await page.getByRole("img", { name: "Pass rate. The table has the numbers." }).waitFor();
    await page.getByRole("region", { name: "Results" }).getByText("pass", { exact: true }).first().waitFor();
    expect(await saved("Save “Outcomes” as CSV")).toMatch(/,1,0,/);
    await expectAccessible(page);
  });

  test(
    "a benchmark is launched, followed, and its configurations compared",
    async () => {
      await page.goto(`/benchmarks?factory=${judged}`);
      await page.getByRole("link", { name: "Core", exact: true }).click();
      await page.getByText("No runs of this suite yet").waitFor();
      await expectAccessible(page);
      await page.getByRole("button", { name: "Launch" }).click();
      await page.getByLabel("Repetitions of each task").fill("2");
      await page.getByText("4 trials").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Launch" }).click();
      await page.getByText("completed", { exact: true }).waitFor({ timeout: RUN_TIMEOUT_MS });
      const matrix = page.getByRole("region", { name: "Configurations" });
      await matrix.getByText("2 of 2").first().waitFor();
      await matrix.getByText("not distinguishable").waitFor();
      await page.getByText("Differs in: runner").waitFor();
      await matrix.getByRole("cell", { name: "small", exact: true }).waitFor();
      await expectFits(page, 1280);
      await page
        .getByRole("region", { name: "Tasks by configuration" })
        .getByRole("cell", { name: "Answer" })
        .waitFor();
      expect(await page.getByRole("region", { name: "Trials" }).getByRole("row").count()).toBe(5);
      await expectAccessible(page);
      await page.getByRole("region", { name: "Trials" }).getByRole("link").first().click();
      await page.waitForURL(/\/runs\/[^/]+$/);
      expect(page.problems).toEqual([]);
    },
    SLOW_MS,
  );
});
