import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { newUid, NIL_UUID } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { domainError } from "@millwright/testing";
import { insertRun, insertScorers, type StoredRun } from "./benchmark-rows.ts";
import { BASE, CANDIDATE, CORRECTNESS, STYLE, TASKS } from "./benchmark-samples.ts";
import { NOW, OWNER, startWorld, TEAM, type World } from "./setup.ts";

let world: World;
let ref: StoredRun;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());
beforeEach(async () => {
  await world.reset();
  const factoryUid = world.aFactory();
  await insertScorers(world, factoryUid);
  ref = await insertRun(world, {
    factoryUid,
    state: "running",
    samples: { [BASE]: "1a 0i p", [CANDIDATE]: "ur cj 1" },
  });
});

type Trial = {
  uid: string;
  configuration_uid: string;
  task_uid: string;
  task_title: string;
  rep_index: number;
  state: string;
  run_id: string | null;
  attempt_count: number;
} & Record<string, unknown>;
type Request = {
  configurationUids?: string[];
  states?: string[];
  agentRunUid?: string;
  pageSize?: number;
  pageToken?: string;
  include?: string[];
};
async function list(request: Request = {}): Promise<{ trials: Trial[]; nextPageToken: string }> {
  const { trials, nextPageToken } = await world.benchmarks.listTrials({ ...ref, ...request }, call(OWNER));
  return { trials: trials.map(({ data }) => data as unknown as Trial), nextPageToken };
}
const read = async (trialUid: string, include: string[] = []): Promise<Trial> =>
  (await world.benchmarks.getTrial({ ...ref, trialUid, include }, call(OWNER))).trial!.data as unknown as Trial;
const states = async (request: Request): Promise<string[]> => (await list(request)).trials.map(({ state }) => state);

describe("the list of trials", () => {
  test("is in the order of the manifest: task, configuration, repetition", async () => {
    const { trials, nextPageToken } = await list();
    expect(
      trials.map((trial) => [TASKS.indexOf(trial.task_uid), trial.configuration_uid === BASE ? 0 : 1, trial.rep_index]),
    ).toEqual([
      [0, 0, 0],
      [0, 0, 1],
      [0, 1, 0],
      [0, 1, 1],
      [1, 0, 0],
      [1, 0, 1],
      [1, 1, 0],
      [1, 1, 1],
      [2, 0, 0],
      [2, 1, 0],
    ]);
    expect(nextPageToken).toBe("");
    expect(trials[0]).toEqual({
      uid: expect.any(String),
      id: expect.any(Number),
      configuration_uid: BASE,
      configuration_id: 1,
      task_uid: TASKS[0],
      suite_task_id: 1,
      task_title: "Add",
      rep_index: 0,
      state: "succeeded",
      run_id: expect.any(String),
      attempt_count: 1,
      is_infra_failure: false,
      created_at: NOW.toISOString(),
      started_at: NOW.toISOString(),
      completed_at: NOW.toISOString(),
    });
  });

  test("is read in pages without gaps, whose cursors are bound to the filters", async () => {
    const all = (await list()).trials.map(({ uid }) => uid);
    const found: string[] = [];
    for (let pageToken = "", isLast = false; !isLast;) {
      const page = await list({ pageSize: 3, pageToken });
      found.push(...page.trials.map(({ uid }) => uid));
      [pageToken, isLast] = [page.nextPageToken, page.nextPageToken === ""];
    }
    expect(found).toEqual(all);
    const { nextPageToken: pageToken } = await list({ pageSize: 1 });
    await expect(list({ pageToken, states: ["failed"] })).rejects.toEqual(domainError({ reason: "invalid_cursor" }));
  });

  test.each<[string, Request, string[]]>([
    ["one state", { states: ["failed"] }, ["failed", "failed"]],
    ["any of several states", { states: ["running", "cancelled"] }, ["running", "cancelled"]],
    ["queued, a synonym of pending", { states: ["queued"] }, ["pending"]],
    [
      "a configuration",
      { configurationUids: [CANDIDATE] },
      ["succeeded", "running", "cancelled", "succeeded", "succeeded"],
    ],
    ["configuration and state", { configurationUids: [CANDIDATE.toUpperCase()], states: ["running"] }, ["running"]],
    ["an unknown configuration", { configurationUids: [newUid()] }, []],
  ])("is filtered by %s", async (_what, request, expected) => expect(await states(request)).toEqual(expected));

  test.each<[string, Request]>([
    ["an unknown state", { states: ["done"] }],
    ["a configuration that is no UUID", { configurationUids: ["baseline"] }],
    ["an unknown include", { include: ["reasons"] }],
    ["agent_run_id with a state", { agentRunUid: newUid(), states: ["failed"] }],
    ["agent_run_id with a configuration", { agentRunUid: newUid(), configurationUids: [BASE] }],
    ["agent_run_id with a cursor", { agentRunUid: newUid(), pageToken: "x" }],
    ["agent_run_id with a limit of 2", { agentRunUid: newUid(), pageSize: 2 }],
  ])("refuses %s", async (_what, request) =>
    expect(list(request)).rejects.toEqual(domainError({ reason: "filter_invalid" })),
  );

  test("a retry is an attempt of the same trial; agent_run_id matches any attempt", async () => {
    const { trials } = await list({ include: ["execution_history"], states: ["failed"] });
    const retried = trials.find(({ attempt_count: count }) => count === 3)!;
    const attempts = retried["attempts"] as { run_id: string; attempt_number: number }[];
    expect(attempts.map(({ attempt_number: number }) => number)).toEqual([1, 2, 3]);
    for (const { run_id: agentRunUid, attempt_number: number } of attempts)
      expect((await list({ agentRunUid, pageSize: 1 })).trials).toMatchObject([
        { uid: retried.uid, run_id: attempts[2]!.run_id, matched_attempt_number: number },
      ]);
    for (const agentRunUid of [newUid(), "x", NIL_UUID]) expect((await list({ agentRunUid })).trials).toEqual([]);
  });

  test("finds no trial of another benchmark run", async () => {
    const other = await insertRun(world, { ...ref, samples: { [BASE]: "1" } });
    const [row] = await world.rows<{ run_uid: string }>("SELECT run_uid FROM trials WHERE benchmark_run_uid = $1", [
      other.runUid,
    ]);
    expect((await list({ agentRunUid: row!.run_uid })).trials).toEqual([]);
  });
});

describe("a trial", () => {
  const of = async (letterState: string, n = 0): Promise<Trial> => (await list({ states: [letterState] })).trials[n]!;

  test("includes scores, metrics and the execution history by name, in the list and alone", async () => {
    const { uid } = await of("succeeded");
    const included = async (include: string[]) =>
      Object.keys(await read(uid, include)).filter((name) =>
        ["scores", "metrics", "attempts", "judge_runs"].includes(name),
      );
    expect(await included([])).toEqual([]);
    expect(await included(["scores"])).toEqual(["scores"]);
    expect(await included(["metrics"])).toEqual(["metrics"]);
    expect(await included(["execution_history"])).toEqual(["attempts", "judge_runs"]);
    expect(await included(["results"])).toEqual(["scores", "metrics"]);
    expect(await included(["details"])).toEqual(["scores", "metrics", "attempts", "judge_runs"]);
    expect((await list({ include: ["details"] })).trials[0]).toEqual(await read(uid, ["details"]));
  });

  test("shows what its judges decided and why", async () => {
    const { uid, run_id: runUid } = await of("succeeded");
    await world.rows(
      `INSERT INTO attempts (uid, scorer_uid, run_uid, factory_uid, team_uid, trial_uid, trigger_source, requester_type, requester_uid, state, is_current, config, run_version,
                             classification, score, reason, reason_status, attempted_at, scored_at)
       VALUES ($1, $2, $3, $4, $5, $6, 'benchmark', 'user', 'u', 'scored', true, '{}', 1, 'good', 1, 'It works.', 'available', $7, $7)`,
      [newUid(), CORRECTNESS, runUid, ref.factoryUid, TEAM, uid, NOW],
    );
    const trial = await read(uid, ["details"]);
    expect(trial["scores"]).toEqual([
      {
        scorer_uid: CORRECTNESS,
        scorer_id: 7,
        scorer_name: "Correctness",
        status: "scored",
        classification: "good",
        score: 1,
        outcome: "pass",
        reason: "It works.",
      },
      {
        scorer_uid: STYLE,
        scorer_id: 8,
        scorer_name: "Style",
        status: "scored",
        classification: "good",
        score: 0.8,
        outcome: "pass",
      },
    ]);
    expect(trial["metrics"]).toEqual({
      total_credits: "0",
      compute_credits: "0",
      platform_credits: "0",
      dollars: 0.01,
      wall_time_s: 2,
      total_tokens: 100,
    });
    expect(trial["attempts"]).toEqual([{ attempt_number: 1, run_id: runUid, state: "succeeded" }]);
    expect(trial["judge_runs"]).toEqual(
      [CORRECTNESS, STYLE].map((scorer_uid) => ({ run_id: expect.any(String), scorer_uid, state: "succeeded" })),
    );
  });

  test("that the agent failed fails correctness; one that the infrastructure failed has no outcome", async () => {
    const outcomes = async (n: number) =>
      ((await read((await of("failed", n)).uid, ["scores"]))["scores"] as { status: string; outcome?: string }[]).map(
        ({ status, outcome }) => [status, outcome],
      );
    expect(await outcomes(0)).toEqual([
      ["not_scoreable", "fail"],
      ["not_scoreable", undefined],
    ]);
    expect(await outcomes(1)).toEqual([
      ["not_scoreable", undefined],
      ["not_scoreable", undefined],
    ]);
    expect(await of("failed", 0)).toMatchObject({ terminal_reason: "failure", is_infra_failure: false });
    expect(await of("failed", 1)).toMatchObject({
      terminal_reason: "failure",
      is_infra_failure: true,
      attempt_count: 3,
    });
  });

  test("has no run and null figures before it is dispatched", async () => {
    const trial = await read((await of("pending")).uid, ["details"]);
    expect(trial).toMatchObject({
      run_id: null,
      attempt_count: 0,
      started_at: null,
      completed_at: null,
      attempts: [],
      judge_runs: [],
    });
    expect(trial["metrics"]).toEqual({
      total_credits: null,
      compute_credits: null,
      platform_credits: null,
      dollars: null,
      wall_time_s: null,
      total_tokens: null,
    });
    expect("terminal_reason" in trial).toBe(false);
  });

  test("is not found in another run of the suite, under a malformed uid or with an unknown include", async () => {
    const other = await insertRun(world, { ...ref, samples: { [BASE]: "1" } });
    const { uid } = await of("succeeded");
    await expect(world.benchmarks.getTrial({ ...other, trialUid: uid }, call(OWNER))).rejects.toEqual(
      domainError({ reason: "trial_not_found" }),
    );
    await expect(read("x")).rejects.toEqual(domainError({ reason: "trial_not_found" }));
    await expect(read(uid, ["judges"])).rejects.toEqual(domainError({ reason: "filter_invalid" }));
  });
});
