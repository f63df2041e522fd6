import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { script } from "./support/runs.ts";
import { aFactory, applied, definitionFiles } from "./support/resources.ts";

let platform: Deployment;
let api: Client;
let factory: string;
const FILES = definitionFiles(script("say: Done."));
const SCORER = {
  path: "scorers/honest-tests/scorer.md",
  content:
    "---\nname: Honest tests\nagents: [foreman]\nlabels: [{value: proves-it, score: 1}, {value: nothing, score: 0}]\npassingScore: 0.75\nmodel: auto\n---\nWould the tests fail without the change?\n",
};
const SUITE = {
  path: "benchmarks/everyday/suite.yaml",
  content:
    "name: Everyday\nagent: foreman\ntasks: [rounding]\nconfigurations:\n  - { role: baseline, displayName: As it is, model: auto }\n",
};
const TASK = {
  path: "benchmarks/everyday/tasks/rounding.yaml",
  content: "title: Rounding\nprompt: Fix it.\nsuccessCriteria: Totals are rounded.\n",
};

beforeAll(async () => {
  platform = await startPlatform();
  api = await connect(platform);
  factory = await aFactory(api, FILES);
});
afterAll(() => platform?.remove());

const scorers = async (): Promise<any[]> => (await api.get(`/factory/${factory}/scorers`)).scorers;
const suites = async (): Promise<any[]> => (await api.get(`/factory/${factory}/benchmarks`)).suites;
const put = (files: { path: string; content: string }[]) => api.put(`/factory/${factory}/source`, { files });
const planned = async (): Promise<string[]> =>
  (await api.post(`/factory/${factory}/source/plan`)).plan
    .filter(({ action }: any) => action !== "unchanged")
    .map(({ kind, name, action }: any) => `${action} ${kind} ${name}`);

test("scorers and suites of files are planned, applied, closed to changes through the API, and deleted with their files", async () => {
  await put([...FILES, SCORER, SUITE, TASK]);
  expect(await planned()).toEqual(["create benchmark everyday", "create scorer honest-tests"]);
  const source = await applied(api, factory);
  expect(source.diagnostics).toEqual([]);
  const { foreman_agent_uid: foreman } = await api.get(`/factory/${factory}`);
  const [scorer] = await scorers();
  // The default sampling rate is 100 in the API and 25 in files.
  expect(scorer).toMatchObject({
    name: "Honest tests",
    scope_mode: "selected_agents",
    agents: [{ uid: foreman, name: "foreman" }],
    sampling_rate: 25,
    model_id: "auto",
    version: 1,
  });
  const [suite] = await suites();
  expect(await api.get(`/factory/${factory}/benchmarks/${suite.uid}`)).toMatchObject({
    name: "Everyday",
    agent_uid: foreman,
    tasks: [{ title: "Rounding" }],
    configurations: [{ role: "baseline", display_name: "As it is" }],
  });
  for (const [method, path] of [
    ["PATCH", `scorers/${scorer.uid}`],
    ["DELETE", `scorers/${scorer.uid}`],
    ["DELETE", `benchmarks/${suite.uid}`],
  ] as const) {
    const { status, body } = await api.call(
      method,
      `/factory/${factory}/${path}`,
      method === "PATCH" ? { body: { name: "x" } } : {},
    );
    expect([status, body.reason]).toEqual([409, "managed_by_files"]);
  }

  await put(FILES);
  expect(await planned()).toEqual(["delete benchmark everyday", "delete scorer honest-tests"]);
  const { diagnostics } = await api.post(`/factory/${factory}/source/plan`);
  expect(diagnostics.map(({ path, code, severity }: any) => [path, code, severity])).toEqual([
    [SUITE.path, "FF_MISSING_FILE", "warning"],
    [SCORER.path, "FF_MISSING_FILE", "warning"],
  ]);
  await applied(api, factory);
  expect([await scorers(), await suites()]).toEqual([[], []]);
  expect((await api.call("GET", `/factory/${factory}/scorers/${scorer.uid}/results`)).status).toBe(404);
});
