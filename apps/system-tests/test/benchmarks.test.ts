import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually, ModelServer } from "@millwright/testing";
import { bareRepository, type Deployment, git, Platform } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { SLOW_MS, startPlatform } from "./support/deployment.ts";
import { RUN_TIMEOUT_MS, runOf, script, shellOutputs } from "./support/runs.ts";
import { aFactory, definitionFiles, teamOf } from "./support/resources.ts";

const TASKS = ["one", "two", "three"];
const [CONFIGURATIONS, REPETITIONS] = [2, 3];
const TRIALS = TASKS.length * CONFIGURATIONS * REPETITIONS;

let models: ModelServer;
let platform: Deployment;
let api: Client;
let repository: string;
let commit: string;
let factory: string;
let suite: string;

/** A task whose script changes the file and emits the answer. A model that does not execute scripts gives no answer. */
const taskOf = (answer: string) => ({
  title: `Count to ${answer}`,
  prompt: script(
    "shell: cd /workspace/prices && git rev-parse HEAD && sleep 1",
    `write: {path: /workspace/prices/answer.txt, content: ${answer}}`,
    `say: The answer is ${answer}.`,
  ),
  success_criteria: "The secret criteria: the answer is right.",
  starting_repo_refs: [{ code_forge: "local", owner: "acme", repo: "prices" }],
  tags: [answer],
  rule: {
    checks: [{ kind: "regex", target: "final_message", pattern: `The answer is ${answer}` }],
    pass: "pass",
    fail: "fail",
  },
});

const configurations = [
  { role: "baseline", display_name: "Follows scripts", model: "scripted" },
  { role: "candidate", display_name: "Knows nothing", model: "claude-opus-5-5" },
];

/** A suite and its factory. */
type Installed = { factory: string; suite: string };

const modelEnvironment = () => ({ ANTHROPIC_API_KEY: "a-key", ANTHROPIC_BASE_URL: models.url });

/** Connects the repositories of a platform and creates the factory and the suite. */
async function install(on: Deployment, client: Client): Promise<Installed> {
  await client.post(`/team/${await teamOf(client)}/code-hosts`, {
    name: "local",
    kind: "local",
    root: on.path("repositories"),
    owners: ["acme"],
  });
  const files = definitionFiles("Work.").map((file) =>
    file.path === "factory.yaml"
      ? { ...file, content: file.content.replace("[]", "\n  - owner: acme\n    name: prices") }
      : file,
  );
  const created = await aFactory(client, files);
  const { agents } = await client.get(`/agent/identities?factory_uid=${created}`);
  const { uid: agent, name } = agents.find((identity: any) => identity.name === "helper");
  const body = {
    name: "Counting",
    agent_uid: agent,
    factory_agent_type: name,
    configurations,
    tasks: TASKS.map(taskOf),
  };
  return { factory: created, suite: (await client.post(`/factory/${created}/benchmarks`, body)).uid };
}

beforeAll(async () => {
  models = await ModelServer.start([{ text: "I do not know.", usage: { input: 7, output: 3 } }]);
  platform = await startPlatform({ env: modelEnvironment() });
  api = await connect(platform);
  repository = bareRepository(platform.path("repositories"), "acme", "prices", { "README.md": "# Prices\n" });
  commit = git(repository, "rev-parse", "main").trim();
  ({ factory, suite } = await install(platform, api));
}, SLOW_MS);
afterAll(async () => {
  await platform?.remove();
  await models?.stop();
});

const runsPath = () => `/factory/${factory}/benchmarks/${suite}/runs`;
const launch = async (body: object): Promise<string> => (await api.post(runsPath(), body)).uid;
const progressOf = async (uid: string): Promise<any> => (await api.get(`${runsPath()}/${uid}/results`)).trial_progress;

/** Waits until the benchmark run has finished and returns it. */
const finished = (uid: string): Promise<any> =>
  eventually(
    async () => {
      const run = await api.get(`${runsPath()}/${uid}?include=launch_settings`);
      if (["completed", "failed", "cancelled"].includes(run.state)) return run;
      throw new Error(
        `The benchmark run is ${run.state}: ${JSON.stringify(run.trial_progress)} ${JSON.stringify(run.score_progress)}`,
      );
    },
    { timeoutMs: 2 * RUN_TIMEOUT_MS, everyMs: 250 },
  );

const trialsOf = async (uid: string): Promise<any[]> =>
  (await api.get(`${runsPath()}/${uid}/trials?limit=100&include=scores&include=execution_history`)).data;
const trialRuns = async (): Promise<any[]> => (await api.get("/agent/runs?source=BENCHMARK_TRIAL&limit=100")).runs;

/** Returns the judges' scores as a string, to be compared byte by byte. */
const verdictsOf = async (uid: string): Promise<string> =>
  JSON.stringify(
    (await trialsOf(uid)).map(({ task_uid: task, configuration_uid: configuration, rep_index: rep, scores }) => [
      task,
      configuration,
      rep,
      scores.map(({ scorer_uid: scorer, status, classification, score, outcome }: any) => [
        scorer,
        status,
        classification,
        score,
        outcome,
      ]),
    ]),
  );

describe("a suite of 3 tasks, 2 configurations and 3 repetitions", () => {
  let uid: string;
  let run: any;
  beforeAll(async () => {
    uid = await launch({ repetition_count: REPETITIONS });
    git(platform.dir, "clone", "--quiet", repository, "later");
    git(platform.path("later"), "commit", "--quiet", "--allow-empty", "-m", "Later work");
    git(platform.path("later"), "push", "--quiet", "origin", "HEAD:main");
    await eventually(async () => (await progressOf(uid)).completed >= 2, { timeoutMs: RUN_TIMEOUT_MS, everyMs: 100 });
    await platform.killEverything();
    await platform.start();
    run = await finished(uid);
  }, SLOW_MS);

  test("completes with every trial executed once, although everything is killed in the middle", async () => {
    expect([run.state, (await progressOf(uid)).succeeded]).toEqual(["completed", TRIALS]);
    const trials = await trialsOf(uid);
    const attempts = trials.flatMap((trial) => trial.attempts.map((attempt: any) => attempt.run_id));
    expect([trials.length, new Set(attempts).size]).toEqual([TRIALS, attempts.length]);
    const runs = await trialRuns();
    expect(new Set(runs.map((one) => one.run_id))).toEqual(new Set(attempts));
    expect(runs.every(({ title, prompt }) => title.startsWith("Count to") && !prompt.includes("secret criteria"))).toBe(
      true,
    );
  });

  test("reports which configuration is worse, over all of its trials", async () => {
    const results = await api.get(`${runsPath()}/${uid}/results`);
    expect(results).toMatchObject({
      run_state: "completed",
      provisional: false,
      trial_progress: { total: TRIALS, completed: TRIALS },
      score_progress: { expected: TRIALS, received: TRIALS },
      coverage: { rate: 1 },
    });
    expect(
      results.configurations.map(({ display_name: name, scoring }: any) => [
        name,
        scoring.pass_count,
        scoring.fail_count,
      ]),
    ).toEqual([
      ["Follows scripts", 9, 0],
      ["Knows nothing", 0, 9],
    ]);
  });

  test("starts its trials at the commit that was current at launch", async () => {
    const scripted = await runOf(api, (await trialsOf(uid))[0].run_id);
    expect((await shellOutputs(api, scripted.run_id))[0]).toContain(commit);
    expect(run.manifest.content.tasks[0].repositories).toMatchObject([{ owner: "acme", repo: "prices", commit }]);
  });

  test("scored again returns byte-equal verdicts without running anything", async () => {
    const replay = await finished(await launch({ repetition_count: REPETITIONS, historical_replay_run_uid: uid }));
    expect([replay.state, replay.manifest_hash]).toEqual(["completed", run.manifest_hash]);
    expect(await verdictsOf(replay.uid)).toBe(await verdictsOf(uid));
    expect((await trialRuns()).length).toBe(new Set((await trialsOf(uid)).flatMap((trial) => trial.attempts)).size);
  });
});

test(
  "the same suite launched on another installation has the same manifest hash",
  async () => {
    const uid = await launch({ repetition_count: 1 });
    const { manifest } = await api.get(`${runsPath()}/${uid}?include=launch_settings`);
    await api.post(`${runsPath()}/${uid}/cancel`);
    const elsewhere = await Platform.start({ workers: 0, env: modelEnvironment() });
    try {
      const copy = elsewhere.path("repositories", "acme", "prices.git");
      git(platform.dir, "clone", "--quiet", "--bare", repository, copy);
      const client = await connect(elsewhere);
      const there = await install(elsewhere, client);
      const runs = `/factory/${there.factory}/benchmarks/${there.suite}/runs`;
      const other = await client.get(
        `${runs}/${(await client.post(runs, { repetition_count: 1 })).uid}?include=launch_settings`,
      );
      expect(other.manifest.content).toEqual(manifest.content);
      expect(other.manifest_hash).toBe((await api.get(`${runsPath()}/${uid}`)).manifest_hash);
      expect(there).not.toMatchObject({ factory });
    } finally {
      await elsewhere.remove();
    }
  },
  SLOW_MS,
);

test(
  "a cancelled benchmark run cancels the runs of its trials and starts no other",
  async () => {
    const before = new Set((await trialRuns()).map((one) => one.run_id));
    const uid = await launch({ repetition_count: REPETITIONS, parallelism: 2 });
    await eventually(async () => (await progressOf(uid)).running > 0, { timeoutMs: RUN_TIMEOUT_MS });
    await api.post(`${runsPath()}/${uid}/cancel`);
    expect((await finished(uid)).state).toBe("cancelled");
    const own = await eventually(
      async (): Promise<any> => {
        const runs = (await trialRuns()).filter((one) => !before.has(one.run_id));
        return runs.every(({ state }) => ["CANCELLED", "SUCCEEDED"].includes(state)) && runs;
      },
      { timeoutMs: RUN_TIMEOUT_MS },
    );
    const { total, cancelled, pending, running } = await progressOf(uid);
    expect([total, pending, running, cancelled > TRIALS - 4, own.length < TRIALS]).toEqual([TRIALS, 0, 0, true, true]);
  },
  SLOW_MS,
);
