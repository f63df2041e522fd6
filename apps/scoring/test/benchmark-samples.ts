import { planOf, type BenchmarkPlan } from "../src/domain/benchmark-plan.ts";
import type { ScoreState, TrialState } from "../src/domain/benchmark-run.ts";
import type { BenchmarkStats, ScoreGroup, TrialGroup } from "../src/domain/benchmark-stats.ts";
import { manifestHash, type Manifest, type ManifestContent } from "../src/domain/manifest.ts";

const uid = (n: number): string => `0199c2f0-0000-7000-8000-${String(n).padStart(12, "0")}`;

export const BASE = uid(11);
export const CANDIDATE = uid(12);
export const TASKS = [uid(21), uid(22), uid(23)];
export const CORRECTNESS = uid(31);
export const STYLE = uid(32);
const AGENT = uid(41);

const task = (title: string, tags: readonly string[]): ManifestContent["tasks"][number] => ({
  title,
  prompt: "p",
  success_criteria: "c",
  rule: null,
  tags,
  labels: {},
  repositories: [],
});
const configuration = (
  role: "baseline" | "candidate",
  display_name: string,
): ManifestContent["configurations"][number] => ({
  role,
  display_name,
  harness: "",
  model: display_name === "small" ? "model-s" : "",
  runner: "",
  harness_auth_secret_name: null,
  agent_configs: [{ agent_name: "coder", harness: "oz", model: "model-m", harness_auth_secret_name: null }],
});
const scorer = (name: string, kind: string, threshold: number): ManifestContent["scorers"][number] => ({
  name,
  kind,
  threshold,
  labels: [],
  scoring_prompt: "",
  model_id: "rule",
  rule: null,
  agent_config: null,
});

/** Manifest content with two configurations, three tasks and two scorers. */
export const CONTENT: ManifestContent = {
  format: "millwright.benchmark.v1",
  runners: [],
  repetition_count: 3,
  agents: [{ name: "coder", layers: [], environment: null, skills: [] }],
  tasks: [task("Add", ["fast", "api"]), task("Fix", ["fast"]), task("Move", [])],
  configurations: [configuration("baseline", "large"), configuration("candidate", "small")],
  scorers: [scorer("Correctness", "benchmark_task_correctness", 0.5), scorer("Style", "user", 0.5)],
};

export const MANIFEST: Manifest = {
  content: CONTENT,
  identifiers: {
    factory_uid: uid(1),
    suite_uid: uid(2),
    suite_version: 4,
    scorer_selection: [],
    agents: [{ uid: AGENT, layers: [] }],
    tasks: TASKS.map((each, n) => ({ uid: each, id: n + 1, source_run_uid: null })),
    configurations: [
      { uid: BASE, id: 1, runner_uid: "" },
      { uid: CANDIDATE, id: 2, runner_uid: uid(51) },
    ],
    scorers: [
      { uid: CORRECTNESS, id: 7, version: 1 },
      { uid: STYLE, id: 8, version: 3 },
    ],
  },
};

export const PLAN: BenchmarkPlan = planOf(MANIFEST);
export const HASH = manifestHash(CONTENT);

type Sample = {
  readonly state: TrialState;
  readonly score: ScoreState;
  readonly outcome: "1" | "0" | "-";
  readonly isInfra?: boolean;
  readonly isDispatched?: boolean;
};

/** Meaning of each letter of a sample. */
export const SAMPLES: Readonly<Record<string, Sample>> = {
  "1": { state: "succeeded", score: "scored", outcome: "1" },
  "0": { state: "succeeded", score: "scored", outcome: "0" },
  /** The agent failed. */
  a: { state: "failed", score: "not_scoreable", outcome: "0" },
  /** The infrastructure failed. */
  i: { state: "failed", score: "not_scoreable", outcome: "-", isInfra: true },
  /** The judge failed. */
  u: { state: "succeeded", score: "finished_unscored", outcome: "-" },
  j: { state: "succeeded", score: "judging", outcome: "-" },
  r: { state: "running", score: "awaiting_trial", outcome: "-" },
  p: { state: "pending", score: "awaiting_trial", outcome: "-", isDispatched: false },
  c: { state: "cancelled", score: "not_scoreable", outcome: "-" },
  /** Cancelled before it was dispatched. */
  x: { state: "cancelled", score: "not_scoreable", outcome: "-", isDispatched: false },
};

/**
 * Returns stats of sample trials. Every dispatched trial cost $0.01 and took 2 s; every judge cost $0.001. Scores of
 * the style scorer are 0.8.
 */
export function statsOf(samples: Readonly<Record<string, string>>): BenchmarkStats {
  const groups = Object.entries(samples).flatMap(([configurationUid, text]) =>
    text.split(" ").map((letters, n) => ({
      configurationUid,
      taskUid: TASKS[n]!,
      samples: letters.split("").map((letter) => SAMPLES[letter]!),
    })),
  );
  return {
    trials: groups.map(trialGroup),
    scores: groups.flatMap((group) => [CORRECTNESS, STYLE].map((scorerUid) => scoreGroup(group, scorerUid))),
    scorerUids: [CORRECTNESS, STYLE],
  };
}

type Group = { readonly configurationUid: string; readonly taskUid: string; readonly samples: readonly Sample[] };

function trialGroup({ samples, ...key }: Group): TrialGroup {
  const count = (isCounted: (sample: Sample) => boolean): number => samples.filter(isCounted).length;
  const of = (state: TrialState): number => count((sample) => sample.state === state);
  const started = count(({ isDispatched = true }) => isDispatched);
  return {
    ...key,
    pending: of("pending"),
    running: of("running"),
    succeeded: of("succeeded"),
    failed: of("failed"),
    cancelled: of("cancelled"),
    started,
    skipped: count(({ state, isDispatched = true }) => state === "cancelled" && !isDispatched),
    infraFailed: count(({ isInfra }) => isInfra === true),
    retries: 2 * count(({ isInfra }) => isInfra === true),
    retried: count(({ isInfra }) => isInfra === true),
    costMicros: 10_000 * started,
    totalTokens: 100 * started,
    wallTimeMs: 2_000 * started,
    judging: count(({ score }) => score === "judging"),
    scoringFinished: count(({ score }) => score === "scored" || score === "finished_unscored"),
    outcomes: samples.map(({ outcome }) => outcome).join(""),
  };
}

function scoreGroup({ samples, ...key }: Group, scorerUid: string): ScoreGroup {
  const of = (state: ScoreState): number => samples.filter(({ score }) => score === state).length;
  const passed = scorerUid === STYLE ? of("scored") : samples.filter(({ outcome }) => outcome === "1").length;
  return {
    ...key,
    scorerUid,
    awaiting_trial: of("awaiting_trial"),
    pending: 0,
    judging: of("judging"),
    scored: of("scored"),
    finished_unscored: of("finished_unscored"),
    not_scoreable: of("not_scoreable"),
    passed,
    scoreSum: scorerUid === STYLE ? 0.8 * passed : passed,
    costMicros: 1_000 * of("scored"),
  };
}
