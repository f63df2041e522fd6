import { expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import type { Manifest, ManifestConfiguration } from "./manifest.ts";
import { trialRunOf } from "./trial-run.ts";

const CONFIGURATION: ManifestConfiguration = {
  role: "baseline",
  display_name: "",
  harness: "",
  model: "",
  runner: "",
  harness_auth_secret_name: null,
  agent_configs: [],
};
const RUN = {
  uid: newUid(),
  agentUid: newUid(),
  factoryUid: newUid(),
  teamUid: newUid(),
  creator: { type: "user", uid: "u" },
};
const [TASK, OTHER_TASK, SOURCE_RUN] = [newUid(), newUid(), newUid()];
const ATTEMPT = { trialUid: newUid(), attemptNumber: 2, taskUid: TASK, configurationUid: newUid() };
const REPOSITORY = { code_forge: "github", owner: "o", repo: "r", commit: "a".repeat(40) };

const aManifest = (
  configuration: Partial<ManifestConfiguration>,
  { runnerUid = "", agentLayer = {} }: { runnerUid?: string; agentLayer?: JsonObject } = {},
): Manifest => ({
  content: {
    format: "millwright.benchmark.v1",
    runners: [],
    repetition_count: 1,
    scorers: [],
    agents: [{ name: "lead", layers: [{ source: "agent", config: agentLayer }], environment: null, skills: [] }],
    tasks: [
      {
        title: "Other",
        prompt: "Other prompt",
        success_criteria: "other secret",
        rule: null,
        tags: [],
        labels: {},
        repositories: [],
      },
      {
        title: "Task",
        prompt: "Do it",
        success_criteria: "secret criteria",
        rule: null,
        tags: [],
        labels: {},
        repositories: [REPOSITORY],
      },
    ],
    configurations: [{ ...CONFIGURATION, ...configuration }],
  },
  identifiers: {
    factory_uid: RUN.factoryUid,
    suite_uid: newUid(),
    suite_version: 1,
    agents: [{ uid: RUN.agentUid, layers: [] }],
    scorers: [],
    scorer_selection: [],
    tasks: [
      { uid: OTHER_TASK, id: 1, source_run_uid: null },
      { uid: TASK, id: 2, source_run_uid: SOURCE_RUN },
    ],
    configurations: [{ uid: ATTEMPT.configurationUid, id: 1, runner_uid: runnerUid }],
  },
});

test("a trial's run has the prompt, title and commits of its task, and nothing of the criteria, the other tasks or the source run", () => {
  const run = trialRunOf(RUN, aManifest({}), ATTEMPT);
  expect(run).toEqual({
    causeKey: `trial:${ATTEMPT.trialUid}:2`,
    title: "Task",
    prompt: "Do it",
    agentUid: RUN.agentUid,
    factoryUid: RUN.factoryUid,
    teamUid: RUN.teamUid,
    creator: RUN.creator,
    dispatcherConfig: {},
    agentOverrides: {},
    repositories: [REPOSITORY],
    metadata: { benchmark_run_id: RUN.uid, trial_id: ATTEMPT.trialUid },
  });
});

test.each<[string, Partial<ManifestConfiguration>, { runnerUid?: string; agentLayer?: JsonObject }, JsonObject]>([
  ["a model for the platform's own agent", { model: "m" }, {}, { harness: { type: "oz" }, model_id: "m" }],
  [
    "a model for the harness of the agent",
    { model: "m" },
    { agentLayer: { harness: { type: "claude" } } },
    { harness: { type: "claude", model_id: "m" } },
  ],
  ["a harness without a model", { harness: "codex" }, {}, { harness: { type: "codex" } }],
  [
    "a harness with its model and its secret",
    { harness: "claude", model: "m", harness_auth_secret_name: "S" },
    {},
    { harness: { type: "claude", model_id: "m" }, harness_auth_secrets: { claude_auth_secret_name: "S" } },
  ],
  ["a runner", {}, { runnerUid: "r-1" }, { runner_id: "r-1" }],
  [
    "the override of the agent itself",
    {
      model: "m",
      agent_configs: [{ agent_name: "lead", harness: "claude", model: "n", harness_auth_secret_name: null }],
    },
    {},
    { harness: { type: "claude", model_id: "n" } },
  ],
])("a configuration may give %s", (_title, configuration, more, config) =>
  expect(trialRunOf(RUN, aManifest(configuration, more), ATTEMPT).dispatcherConfig).toEqual(config),
);

test("overrides for agents that the suite's agent can delegate to are given by their uids, in the harness of each", () => {
  const [helper, silent] = [newUid(), newUid()];
  const override = { agent_name: "", harness: "", model: "", harness_auth_secret_name: null };
  const manifest = aManifest({
    model: "m",
    agent_configs: [override, { ...override, agent_name: "helper", model: "n" }, { ...override, agent_name: "silent" }],
  });
  const { content, identifiers } = manifest;
  const agents = [
    ...content.agents,
    {
      name: "helper",
      layers: [{ source: "agent", config: { harness: { type: "claude" } } }],
      environment: null,
      skills: [],
    },
    { name: "silent", layers: [], environment: null, skills: [] },
  ];
  const known = [...identifiers.agents, { uid: helper, layers: [] }, { uid: silent, layers: [] }];
  const run = trialRunOf(
    RUN,
    { content: { ...content, agents }, identifiers: { ...identifiers, agents: known } },
    ATTEMPT,
  );
  expect(run.agentOverrides).toEqual({ [helper]: { harness: { type: "claude", model_id: "n" } } });
  expect(run.dispatcherConfig).toMatchObject({ model_id: "m" });
});

test("a trial whose task the manifest lacks is a programming error", () => {
  expect(() => trialRunOf(RUN, aManifest({}), { ...ATTEMPT, taskUid: newUid() })).toThrow(/lacks the task/);
});
