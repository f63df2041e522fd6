import type { Uid } from "@millwright/ids";
import type { Manifest } from "./manifest.ts";
import type { Actor, SuiteUid } from "./suite.ts";

export type BenchmarkRunUid = Uid<"benchmark_run">;
export type TrialUid = Uid<"trial">;

export const BENCHMARK_RUN_STATES = ["pending", "running", "scoring", "completed", "failed", "cancelled"] as const;
export type BenchmarkRunState = (typeof BENCHMARK_RUN_STATES)[number];

export const TRIAL_STATES = ["pending", "running", "succeeded", "failed", "cancelled"] as const;
export type TrialState = (typeof TRIAL_STATES)[number];

/** States of a score in the ledger; a score belongs to one trial and one scorer. */
export const SCORE_STATES = [
  "awaiting_trial",
  "pending",
  "judging",
  "scored",
  "finished_unscored",
  "not_scoreable",
] as const;
export type ScoreState = (typeof SCORE_STATES)[number];

/** Maximum number of trials of one benchmark run. */
export const TRIALS_MAX = 10_000;
/** Number of trials of a benchmark run that are executed concurrently. */
export const PARALLELISM = { default: 4, max: 100 } as const;

/** One launch of a suite. */
export type BenchmarkRun = {
  readonly uid: BenchmarkRunUid;
  readonly suiteUid: SuiteUid;
  readonly suiteName: string;
  readonly suiteVersion: number;
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly state: BenchmarkRunState;
  readonly manifest: Manifest;
  readonly manifestHash: string;
  readonly repetitionCount: number;
  readonly agentUid: string;
  readonly agentName: string;
  /** Maximum number of concurrent trials. */
  readonly parallelism: number;
  /** The benchmark run whose trials a replay scores again. */
  readonly replayedRunUid: string | null;
  /** Reason why the results are incomplete; set for cancelled and failed runs. */
  readonly incompleteReason: string | null;
  readonly creator: Actor;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
};

/** Selects a page of the benchmark runs of a suite, newest first. No states select all states. */
export type BenchmarkRunQuery = {
  readonly factoryUid: string;
  readonly suiteUid: SuiteUid;
  readonly states: readonly BenchmarkRunState[];
  readonly after?: { readonly createdAt: Date; readonly uid: string };
  readonly limit: number;
  /** If false, manifests are returned without agents, and their tasks without prompts and criteria. */
  readonly isFull: boolean;
};

/** Returns whether the state is terminal. */
export const isFinished = (state: BenchmarkRunState): boolean =>
  state === "completed" || state === "failed" || state === "cancelled";

/** Payload of the work items that drive a benchmark run. Kind: `advance-benchmark`; key: uid of the benchmark run. */
export type AdvanceBenchmark = { readonly benchmark_run_uid: string };
/** Payload of the work items that cancel the run of a trial. Kind: `cancel-trial-run`; key: uid of the run. */
export type CancelTrialRun = {
  readonly benchmark_run_uid: string;
  readonly trial_uid: string;
  readonly run_uid: string;
};
