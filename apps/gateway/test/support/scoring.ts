import type { MessageInitShape } from "@bufbuild/protobuf";
import type { scoring } from "@millwright/contracts";
import { AGENT, RUN, TEAM, USER } from "./people.ts";
import { at, CREATED, FACTORY, UPDATED } from "./records.ts";

const SCORER_UID = "0198c2d0-0000-7000-8000-00000000c0c1";
export const SCORERS = `/api/v1/factory/${FACTORY}/scorers`;
export const SCORER = `${SCORERS}/${SCORER_UID}`;

/** A scorer as the scoring service returns it. */
export const aScorer = (
  fields: MessageInitShape<typeof scoring.ScorerSchema> = {},
): MessageInitShape<typeof scoring.ScorerSchema> => ({
  uid: SCORER_UID,
  id: 3n,
  factoryUid: FACTORY,
  teamUid: TEAM,
  name: "Tone",
  description: "",
  scorerKind: "user",
  scopeMode: "all_agents",
  allowedClassifications: [
    { value: "good", score: 1, description: "Kind." },
    { value: "bad", score: 0 },
  ],
  threshold: 0.5,
  scoringPrompt: "Is it kind?",
  modelId: "scripted",
  samplingRate: 100,
  version: 1,
  createdAt: at(CREATED),
  updatedAt: at(UPDATED),
  ...fields,
});

/** The same scorer as the public API returns it. */
export const RECORD = {
  uid: SCORER_UID,
  id: 3,
  factory_uid: FACTORY,
  name: "Tone",
  description: "",
  scorer_kind: "user",
  scope_mode: "all_agents",
  agent_uids: [],
  agents: [],
  allowed_classifications: [
    { value: "good", score: 1, description: "Kind." },
    { value: "bad", score: 0 },
  ],
  threshold: 0.5,
  scoring_prompt: "Is it kind?",
  model_id: "scripted",
  sampling_rate: 100,
  agent_config: {},
  rule: null,
  self_improvement_enabled: false,
  version: 1,
  created_at: CREATED,
  updated_at: UPDATED,
};

export const BENCHMARKS = `/api/v1/factory/${FACTORY}/benchmarks`;
export const SUITE_UID = "0198c2d0-0000-7000-8000-00000000c0d1";
export const TASK_UID = "0198c2d0-0000-7000-8000-00000000c0d2";
export const CONFIGURATION_UID = "0198c2d0-0000-7000-8000-00000000c0d3";
export const BENCHMARK_RUN_UID = "0198c2d0-0000-7000-8000-00000000c0d4";
export const TRIAL_UID = "0198c2d0-0000-7000-8000-00000000c0d5";
export const SUITE = `${BENCHMARKS}/${SUITE_UID}`;
export const BENCHMARK_RUN = `${SUITE}/runs/${BENCHMARK_RUN_UID}`;

/** A task as the scoring service returns it, and as the public API returns it. */
export const aTask = (
  fields: MessageInitShape<typeof scoring.SuiteTaskSchema> = {},
): MessageInitShape<typeof scoring.SuiteTaskSchema> => ({
  uid: TASK_UID,
  id: 7n,
  title: "Fix it",
  prompt: "Fix the bug.",
  successCriteria: "Tests pass.",
  sourceRunUid: RUN,
  startingRepoRefs: [
    { codeForge: "github", owner: "o", repo: "r", ref: "main" },
    { codeForge: "local", owner: "o", repo: "l" },
  ],
  tags: ["bug"],
  labels: { size: "s" },
  ...fields,
});
export const TASK_RECORD = {
  uid: TASK_UID,
  id: 7,
  title: "Fix it",
  prompt: "Fix the bug.",
  success_criteria: "Tests pass.",
  source_run_id: RUN,
  starting_repo_refs: [
    { code_forge: "github", owner: "o", repo: "r", ref: "main" },
    { code_forge: "local", owner: "o", repo: "l" },
  ],
  tags: ["bug"],
  labels: { size: "s" },
  rule: null,
};

/** A suite with a task and a configuration, and as the public API returns it. */
export const aSuite = (
  fields: MessageInitShape<typeof scoring.SuiteSchema> = {},
): MessageInitShape<typeof scoring.SuiteSchema> => ({
  uid: SUITE_UID,
  factoryUid: FACTORY,
  teamUid: TEAM,
  name: "Bugs",
  description: "Old ones.",
  agentUid: AGENT,
  factoryAgentType: "coder",
  creatorUid: USER,
  version: 2,
  configurations: [
    {
      uid: CONFIGURATION_UID,
      id: 1n,
      role: "baseline",
      displayName: "Now",
      model: "scripted",
      agentConfigs: [{ agentUid: AGENT, harness: "oz", model: "m", agentName: "coder" }],
    },
  ],
  tasks: [aTask()],
  spawnableDescendantAgentUids: [USER],
  createdAt: at(CREATED),
  updatedAt: at(UPDATED),
  ...fields,
});
export const SUITE_RECORD = {
  uid: SUITE_UID,
  factory_uid: FACTORY,
  name: "Bugs",
  description: "Old ones.",
  agent_uid: AGENT,
  factory_agent_type: "coder",
  version: 2,
  configurations: [
    {
      uid: CONFIGURATION_UID,
      id: 1,
      role: "baseline",
      display_name: "Now",
      model: "scripted",
      agent_configs: [{ agent_uid: AGENT, harness: "oz", model: "m", agent_name: "coder" }],
    },
  ],
  creator: { type: "user", uid: USER, display_name: "Ada", email: "ada@example.com" },
  created_at: CREATED,
  updated_at: UPDATED,
};

/** A benchmark run before its first trial, and as the public API returns it. */
export const aBenchmarkRun = (
  fields: MessageInitShape<typeof scoring.BenchmarkRunSchema> = {},
): MessageInitShape<typeof scoring.BenchmarkRunSchema> => ({
  uid: BENCHMARK_RUN_UID,
  factoryUid: FACTORY,
  suiteUid: SUITE_UID,
  suiteName: "Bugs",
  suiteVersion: 2,
  state: "pending",
  createdAt: at(CREATED),
  updatedAt: at(UPDATED),
  repetitionCount: 3,
  creatorUid: USER,
  manifestHash: "ab12",
  ...fields,
});
export const BENCHMARK_RUN_RECORD = {
  uid: BENCHMARK_RUN_UID,
  factory_uid: FACTORY,
  suite_uid: SUITE_UID,
  suite_name: "Bugs",
  suite_version: 2,
  state: "pending",
  created_at: CREATED,
  updated_at: UPDATED,
  started_at: null,
  completed_at: null,
  repetition_count: 3,
  elapsed_s: null,
  trial_count: null,
  task_count: null,
  scorer_count: null,
  total_credits: null,
  cost_usd: null,
  configuration_stats: null,
  manifest_hash: "ab12",
};
