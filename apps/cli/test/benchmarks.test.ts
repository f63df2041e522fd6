import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { seen, answers, millwright } = fakeApi();

const F1 = "0198a202-0000-7000-8000-00000000000f";
const BENCHMARKS = `/api/v1/factory/${F1}/benchmarks`;
const RUNS = `${BENCHMARKS}/s1/runs`;
const benchmark = (...argv: string[]) => millwright("benchmark", ...argv, "--factory", F1);

let dir: string;
beforeEach(async () => void (dir = await mkdtemp(join(tmpdir(), "millwright-cli-"))));
afterEach(() => rm(dir, { recursive: true, force: true }));
const fileOf = async (content: unknown): Promise<string> => {
  const path = join(dir, "body.json");
  await writeFile(path, JSON.stringify(content));
  return path;
};

const coverage = { expected: 8, received: 7, rate: 0.875 };
const scoring = (rate: number | null) => ({
  pass_count: rate === null ? 0 : rate * 8,
  fail_count: rate === null ? 0 : 8 - rate * 8,
  pass_rate: rate,
  interval: rate === null ? null : { low: 0.2, high: 0.9 },
  coverage,
});
const difference = { difference: -0.5, interval: { low: -0.8, high: -0.1 }, verdict: "worse" };
const configuration = (role: string, rate: number | null, more = {}) => ({
  uid: role,
  role,
  display_name: role === "baseline" ? "Now" : "",
  metrics: { avg_wall_time_s: 12, dollars: 0.25 },
  scoring: { ...scoring(rate), difference_to_baseline: null, ...more },
});
const results = (rates: readonly (number | null)[], state = "completed") => ({
  run_state: state,
  incomplete_reason: null,
  summary_narrative: "8 trials.",
  configurations: rates.map((rate, at) =>
    configuration(at === 0 ? "baseline" : "candidate", rate, at === 0 ? {} : { difference_to_baseline: difference }),
  ),
});
const comparison = (verdict: string) => ({
  same_manifest: false,
  changed_tasks: ["Fix it"],
  tasks_only_in_run: [],
  tasks_only_in_other_run: [],
  configurations: [
    {
      role: "baseline",
      display_name: "Now",
      run: scoring(0.5),
      other_run: scoring(1),
      difference: { ...difference, verdict },
      verdict,
    },
  ],
});
const run = (state: string, completed: number, failed = 0) => ({
  uid: "b1",
  state,
  created_at: "T1",
  suite_version: 2,
  trial_count: 8,
  cost_usd: 0,
  trial_progress: { total: 8, completed, failed },
  score_progress: { received: completed, expected: 8 },
  configuration_stats: [{ display_name: "", role: "candidate", pass_rate: 0.5 }],
});

describe("suites", () => {
  const SUITE = {
    uid: "s1",
    name: "Bugs",
    factory_agent_type: "coder",
    version: 2,
    updated_at: "T1",
    tasks: [{}, {}],
    configurations: [{}],
  };
  test("are listed", async () => {
    answers[`GET ${BENCHMARKS}`] = { status: 200, body: { suites: [SUITE] } };
    expect((await benchmark("list")).out).toMatch(/^s1 +Bugs +coder +2 +T1$/m);
  });
  test("are created from a JSON file", async () => {
    answers[`POST ${BENCHMARKS}`] = { status: 201, body: SUITE };
    expect(await benchmark("create", await fileOf({ name: "Bugs" }))).toMatchObject({
      code: 0,
      out: "suite s1 (Bugs), version 2: 2 tasks, 1 configurations",
    });
    expect(seen.at(-1)!.body).toEqual({ name: "Bugs" });
  });
  test("get tasks from a file, or from a run with criteria", async () => {
    answers[`POST ${BENCHMARKS}/s1/tasks`] = { status: 201, body: { uid: "t1", title: "Fix it" } };
    answers[`POST ${BENCHMARKS}/compose-task`] = {
      status: 200,
      body: { title: "Fix it", prompt: "P", source_run_id: "r1" },
    };
    expect(await benchmark("add-task", "s1", await fileOf({ title: "Fix it" }))).toMatchObject({
      code: 0,
      out: "task t1 (Fix it)",
    });
    expect(seen.at(-1)!.body).toEqual({ title: "Fix it" });
    expect((await benchmark("add-task", "s1", "--run", "r1", "--criteria", "Tests pass.")).code).toBe(0);
    expect(seen.slice(-2).map(({ body }) => body)).toEqual([
      { run_id: "r1" },
      { title: "Fix it", prompt: "P", source_run_id: "r1", success_criteria: "Tests pass." },
    ]);
  });
  test.each([[[]], [["--run", "r1"]], [["f.json", "--run", "r1", "--criteria", "c"]]])(
    "add-task with %j is wrong usage",
    async (more) => {
      expect((await benchmark("add-task", "s1", ...more)).code).toBe(2);
    },
  );
});

describe("benchmark launch", () => {
  const launch = (...more: string[]) => benchmark("launch", "s1", "--interval", "0.01", ...more);
  beforeEach(() => {
    answers[`POST ${RUNS}`] = { status: 201, body: { uid: "b1", state: "pending" } };
    answers[`GET ${RUNS}/b1`] = { status: 200, body: run("completed", 8) };
    answers[`GET ${RUNS}/b1/results`] = { status: 200, body: results([0.75, 0.25]) };
  });
  test("launches the given configurations and tasks and returns immediately", async () => {
    const configurations = await fileOf([{ role: "baseline" }]);
    const given = [
      "--repetitions",
      "3",
      "--configurations",
      configurations,
      "--task",
      "t1",
      "--task",
      "t2",
      "--scorer",
      "3",
      "--parallelism",
      "2",
    ];
    expect(await launch(...given)).toMatchObject({ code: 0, out: "benchmark run b1 is pending." });
    expect(seen.map(({ method, body }) => [method, body])).toEqual([
      [
        "POST",
        {
          repetition_count: 3,
          configurations: [{ role: "baseline" }],
          tasks: ["t1", "t2"],
          scorer_selection: ["3"],
          parallelism: 2,
        },
      ],
    ]);
  });
  test("--replay uses the repetitions of the benchmark run that it scores again", async () => {
    answers[`GET ${RUNS}/b0`] = { status: 200, body: { ...run("completed", 8), repetition_count: 4 } };
    expect((await launch("--replay", "b0")).code).toBe(0);
    expect(seen.at(-1)).toMatchObject({
      method: "POST",
      body: { repetition_count: 4, historical_replay_run_uid: "b0" },
    });
  });
  test("--watch prints progress once per change, then the results, also when a read fails in between", async () => {
    answers[`GET ${RUNS}/b1`] = [
      { status: 200, body: { ...run("pending", 0), trial_progress: undefined } },
      { status: 200, body: run("running", 4, 1) },
      { status: 200, body: run("running", 4, 1) },
      { status: 500, body: { status: 500 } },
      { status: 200, body: run("completed", 8) },
    ];
    const { code, out } = await launch("--watch");
    expect(code).toBe(0);
    expect(out.split("\n").slice(0, 4)).toEqual([
      "benchmark run b1",
      "pending",
      "running: 4 of 8 trials completed (1 failed), 4 of 8 scores",
      "completed: 8 of 8 trials completed, 8 of 8 scores",
    ]);
    expect(out).toMatch(/^Now +baseline +6\/8 +75\.0 % +20\.0 % to 90\.0 % +7\/8 +12\.0 s +\$0\.2500$/m);
    expect(out).toMatch(/^candidate +candidate +2\/8 +25\.0 % .* -50\.0 points \(-80\.0 to -10\.0\): worse +12\.0 s/m);
    expect(out).toContain("8 trials.");
  });
  test("--watch --json prints only the results", async () => {
    expect(JSON.parse((await launch("--watch", "--json")).out)).toEqual(results([0.75, 0.25]));
  });
  test.each(["failed", "cancelled"])("--watch is exit code 1 for a %s run", async (state) => {
    answers[`GET ${RUNS}/b1`] = { status: 200, body: run(state, 2) };
    answers[`GET ${RUNS}/b1/results`] = {
      status: 200,
      body: { ...results([0.5], state), incomplete_reason: "It was cancelled." },
    };
    const { code, out, err } = await launch("--watch");
    expect([code, err]).toEqual([1, `The benchmark run is ${state}, not completed.`]);
    expect(out).toContain("Incomplete: It was cancelled.");
  });
  test.each<[string, (number | null)[], number, string]>([
    ["75", [0.75, 0.8], 0, ""],
    ["75.1", [0.75, 0.8], 1, "The pass rate of Now is 75.0 %, below 75.1 %."],
    ["50", [0.75, 0.25], 1, "The pass rate of candidate is 25.0 %, below 50 %."],
    ["0", [0, null], 1, "candidate has no outcome."],
  ])("--fail-below %s with pass rates %j is exit code %i", async (below, rates, code, err) => {
    answers[`GET ${RUNS}/b1/results`] = { status: 200, body: results(rates) };
    expect(await launch("--fail-below", below)).toMatchObject({ code, err });
  });
  test.each([
    ["worse", 1],
    ["better", 0],
    ["not distinguishable", 0],
  ])("--compare-to is exit code 1 only if distinguishably worse: %s is %i", async (verdict, code) => {
    answers[`GET ${RUNS}/b1/compare?other_run_uid=b0`] = { status: 200, body: comparison(verdict) };
    const result = await launch("--compare-to", "b0");
    expect(result.code).toBe(code);
    expect(result.err).toBe(code === 0 ? "" : "Now is worse than in the other run: -50.0 points (-80.0 to -10.0).");
    expect(result.out).toMatch(/^Now +50\.0 % \(7\/8\) +100\.0 % \(7\/8\) +-50\.0 points \(-80\.0 to -10\.0\): /m);
    expect(result.out).toContain("Tasks with other content: Fix it");
  });
  test.each([
    ["--fail-below", "x"],
    ["--fail-below", "101"],
    ["--fail-below", ""],
    ["--repetitions", "0"],
    ["--compare-to", "../x"],
    ["--interval", "0"],
  ])("%s %j is wrong usage and launches nothing", async (...more) => {
    expect((await benchmark("launch", "s1", ...more)).code).toBe(2);
    expect(seen).toEqual([]);
  });
});

describe("benchmark runs", () => {
  test("are listed with progress and pass rates", async () => {
    answers[`GET ${RUNS}?state=running&state=scoring`] = { status: 200, body: { data: [run("running", 4)] } };
    expect((await benchmark("runs", "s1", "--state", "running,scoring")).out).toMatch(
      /^b1 +T1 +2 +running: 4 of 8 trials completed, 4 of 8 scores +candidate 50\.0 %$/m,
    );
  });
  test("show results of an active run, for which every condition fails", async () => {
    answers[`GET ${RUNS}/b1/results`] = { status: 200, body: results([1], "running") };
    expect((await benchmark("results", "s1", "b1")).code).toBe(0);
    expect((await benchmark("results", "s1", "b1", "--fail-below", "50")).code).toBe(1);
  });
  test.each([
    ["worse", 1],
    ["not distinguishable", 0],
  ])("are compared; %s is exit code %i", async (verdict, code) => {
    answers[`GET ${RUNS}/b1/compare?other_run_uid=b0`] = { status: 200, body: comparison(verdict) };
    expect((await benchmark("compare", "s1", "b1", "b0")).code).toBe(code);
  });
  test("are cancelled; a finished one is failed work", async () => {
    answers[`POST ${RUNS}/b1/cancel`] = { status: 200, body: run("cancelled", 2) };
    expect(await benchmark("cancel", "s1", "b1")).toMatchObject({ code: 0, out: "benchmark run b1 is cancelled." });
    answers[`POST ${RUNS}/b1/cancel`] = {
      status: 400,
      body: { status: 400, detail: "It has finished.", reason: "benchmark_run_finished" },
    };
    expect((await benchmark("cancel", "s1", "b1")).code).toBe(1);
  });
  test("list and export their trials", async () => {
    const trial = {
      uid: "t1",
      task_title: "Fix it",
      configuration_uid: "c1",
      rep_index: 0,
      state: "failed",
      terminal_reason: "timeout",
      run_id: "r1",
      attempt_count: 2,
      scores: [{ scorer_name: "Correctness", status: "scored", outcome: "fail" }],
    };
    answers[`GET ${RUNS}/b1/trials?state=failed&include=scores`] = { status: 200, body: { data: [trial] } };
    answers[`GET ${RUNS}/b1/trials/export?format=ndjson`] = { status: 200, text: '{"uid":"t1"}\n{"uid":"t2"}\n' };
    answers[`GET ${RUNS}/b1/trials/export?format=csv`] = { status: 200, text: "trial_uid\r\nt1\r\n", type: "text/csv" };
    expect((await benchmark("trials", "s1", "b1", "--state", "failed")).out).toMatch(
      /^Fix it +c1 +0 +failed \(timeout\) +2 +r1 +Correctness fail$/m,
    );
    expect((await benchmark("trials", "s1", "b1", "--export", "ndjson")).out).toBe('{"uid":"t1"}\n{"uid":"t2"}');
    expect((await benchmark("trials", "s1", "b1", "--export", "csv")).out.split(/\r?\n/)).toEqual(["trial_uid", "t1"]);
    expect((await benchmark("trials", "s1", "b1", "--export", "xml")).code).toBe(2);
  });
});
