import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { seen, answers, millwright } = fakeApi();

const F1 = "0198a202-0000-7000-8000-00000000000f";
const SCORERS = `/api/v1/factory/${F1}/scorers`;
const SCORER = {
  uid: "s1",
  name: "Tone",
  model_id: "rule",
  scope_mode: "selected_agents",
  agents: [{ uid: "a1", name: "coder" }, { uid: "a2" }],
  sampling_rate: 25,
  version: 3,
};
const scorer = (...argv: string[]) => millwright("scorer", ...argv, "--factory", F1);

let dir: string;
beforeEach(async () => void (dir = await mkdtemp(join(tmpdir(), "millwright-cli-"))));
afterEach(() => rm(dir, { recursive: true, force: true }));

test("lists scorers with the pass rate of their recent scores, those of benchmarks on request", async () => {
  const listed = [
    { ...SCORER, result_count: 9, pass_rate_summary: { pass_rate: 0.75 } },
    {
      ...SCORER,
      uid: "s2",
      scope_mode: "all_agents",
      agents: [],
      result_count: 0,
      pass_rate_summary: { pass_rate: null },
    },
  ];
  answers[`GET ${SCORERS}`] = { status: 200, body: { scorers: listed } };
  answers[`GET ${SCORERS}?include_managed=true`] = { status: 200, body: { scorers: [] } };
  const { code, out } = await scorer("list");
  expect(code).toBe(0);
  expect(out).toMatch(/^s1 +Tone +rule +coder, a2 +25 % +75\.0 % +9$/m);
  expect(out).toMatch(/^s2 +Tone +rule +all +25 % +- +0$/m);
  expect((await scorer("list", "--managed")).code).toBe(0);
  expect(JSON.parse((await scorer("list", "--json")).out)).toEqual(listed);
});

test("creates a scorer from a JSON file", async () => {
  const file = join(dir, "scorer.json");
  await writeFile(file, '{"name":"Tone","threshold":0.5}');
  answers[`POST ${SCORERS}`] = { status: 201, body: SCORER };
  expect(await scorer("create", file)).toMatchObject({
    code: 0,
    out: "scorer s1 (Tone), version 3, judged by rule, agents: coder, a2",
  });
  expect(seen.at(-1)!.body).toEqual({ name: "Tone", threshold: 0.5 });
  expect((await scorer("create", join(dir, "none.json"))).code).toBe(2);
});

test("shows results, of some runs and with reasons on request", async () => {
  const scored = {
    run_id: "r1",
    attempted_at: "T1",
    status: "scored",
    classification: "bad",
    score: 0,
    outcome: "fail",
    reasons: [{ reason: "Unkind.\nVery." }],
  };
  answers[`GET ${SCORERS}/s1/results?include_reasons=true&run_id=r1&run_id=r2`] = {
    status: 200,
    body: {
      results: [
        scored,
        {
          run_id: "r2",
          attempted_at: "T0",
          status: "failed",
          failure_code: "judge_failed",
          outcome: null,
          reasons: [{}],
        },
      ],
    },
  };
  const { out } = await scorer("show-results", "s1", "--run", "r1", "--run", "r2", "--reasons");
  expect(out).toMatch(/^T1 +r1 +scored +bad +0 +fail +Unkind\. Very\.$/m);
  expect(out).toMatch(/^T0 +r2 +failed +judge_failed$/m);
});

test.each([
  ["dispatched", 0],
  ["failed", 1],
])("dispatches scoring; an outcome that is %s is exit code %i", async (status, code) => {
  answers[`POST ${SCORERS}/s1/dispatch`] = {
    status: 200,
    body: {
      results: [
        { scorer_uid: "s1", run_id: "r1", status: "dispatched", scoring_run_id: "j1" },
        { scorer_uid: "s1", run_id: "r2", status, error: "In flight." },
      ],
    },
  };
  const result = await scorer("dispatch", "s1", "r1", "r2");
  expect([result.code, result.out]).toEqual([code, expect.stringMatching(/r1 +dispatched +j1\nr2 +\w+ +In flight\./)]);
  expect(seen.at(-1)!.body).toEqual({ run_ids: ["r1", "r2"] });
});

test("shows the pass rate per period with cost", async () => {
  answers[`GET ${SCORERS}/s1/metrics?start_date=2026-11-01&group_by_period=week&include_cost=true`] = {
    status: 200,
    body: {
      period_list: ["2026-11-01"],
      pass_rate: {
        pass_count: 1,
        fail_count: 3,
        pass_rate: 0.25,
        series: [{ pass_count: 1, fail_count: 3, pass_rate: 0.25 }],
      },
      cost: { dollars: 0.5, series: [0.5] },
    },
  };
  const { out } = await scorer("metrics", "s1", "--from", "2026-11-01", "--by", "week", "--cost");
  expect(out).toMatch(/^2026-11-01 +1 +3 +25\.0 % +\$0\.5000\nall +1 +3 +25\.0 % +\$0\.5000$/m);
  expect((await scorer("metrics", "s1", "--by", "year")).code).toBe(2);
});

test("deletes a scorer", async () => {
  answers[`DELETE ${SCORERS}/s1`] = { status: 204 };
  expect(await scorer("delete", "s1")).toMatchObject({ code: 0, out: "scorer s1 is deleted." });
  expect((await scorer("delete", "..")).code).toBe(2);
});
