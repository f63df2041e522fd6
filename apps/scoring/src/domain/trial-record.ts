import { omitUndefined, type JsonObject, type JsonValue } from "@millwright/json";
import type { BenchmarkPlan } from "./benchmark-plan.ts";
import { dollars, NO_CREDITS, seconds } from "./benchmark-progress.ts";
import type { ScoreState, TrialState } from "./benchmark-run.ts";
import { outcomeOf } from "./scorer.ts";

export type TrialScoreRecord = {
  readonly scorerUid: string;
  readonly state: ScoreState;
  readonly classification: string | null;
  readonly score: number | null;
  readonly judgeRunUid: string | null;
  /** Reason given by the judge; null if there is none or it is no longer readable. */
  readonly reason: string | null;
};

export type TrialAttemptRecord = {
  readonly attemptNumber: number;
  readonly runUid: string | null;
  readonly state: TrialState;
  readonly errorCode: string | null;
};

export type TrialRecord = {
  readonly uid: string;
  readonly id: number;
  /** Index in the order of the manifest. */
  readonly position: number;
  readonly configurationUid: string;
  readonly taskUid: string;
  readonly repIndex: number;
  readonly state: TrialState;
  readonly terminalReason: "timeout" | "failure" | null;
  readonly isInfraFailure: boolean;
  readonly runUid: string | null;
  readonly attemptCount: number;
  readonly costMicros: number;
  readonly totalTokens: number;
  readonly wallTimeMs: number;
  readonly usage: JsonValue;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  /** In the order of the manifest, without deleted scorers. */
  readonly scores: readonly TrialScoreRecord[];
  /** Attempts, oldest first. */
  readonly attempts: readonly TrialAttemptRecord[];
};

/** Parts that a trial's record can include; `results` and `details` select several parts. */
const PARTS = {
  scores: ["scores"],
  metrics: ["metrics"],
  execution_history: ["execution_history"],
  results: ["scores", "metrics"],
  details: ["scores", "metrics", "execution_history"],
} as const;
export type TrialInclude = keyof typeof PARTS;
export const TRIAL_INCLUDES = Object.keys(PARTS) as readonly TrialInclude[];

/** Returns the public record of a trial. */
export function trialJson(
  trial: TrialRecord,
  plan: BenchmarkPlan,
  include: readonly TrialInclude[],
  matchedRunUid?: string,
): JsonObject {
  const parts = new Set(include.flatMap((name) => PARTS[name] as readonly string[]));
  const task = plan.tasks.find(({ uid }) => uid === trial.taskUid);
  return omitUndefined({
    uid: trial.uid,
    id: trial.id,
    configuration_uid: trial.configurationUid,
    configuration_id: plan.configurations.find(({ uid }) => uid === trial.configurationUid)?.id,
    task_uid: trial.taskUid,
    suite_task_id: task?.id,
    task_title: task?.title,
    rep_index: trial.repIndex,
    state: trial.state,
    run_id: trial.runUid,
    attempt_count: trial.attemptCount,
    matched_attempt_number:
      matchedRunUid === undefined
        ? undefined
        : trial.attempts.find(({ runUid }) => runUid === matchedRunUid)?.attemptNumber,
    terminal_reason: trial.terminalReason ?? undefined,
    is_infra_failure: trial.isInfraFailure,
    created_at: trial.createdAt.toISOString(),
    started_at: trial.startedAt?.toISOString() ?? null,
    completed_at: trial.completedAt?.toISOString() ?? null,
    scores: parts.has("scores") ? scoresJson(trial, plan) : undefined,
    metrics: parts.has("metrics") ? metricsJson(trial) : undefined,
    attempts: parts.has("execution_history") ? attemptsJson(trial) : undefined,
    judge_runs: parts.has("execution_history") ? judgeRunsJson(trial) : undefined,
  });
}

/** Returns the scores of a trial. A trial that the agent failed has no score and the outcome `fail` for correctness. */
const scoresJson = (trial: TrialRecord, plan: BenchmarkPlan): JsonObject[] =>
  plan.scorers.flatMap((scorer) => {
    const found = trial.scores.find(({ scorerUid }) => scorerUid === scorer.uid);
    if (!found) return [];
    const { state, classification, score, reason } = found;
    const isAgentFailure = scorer.uid === plan.correctness?.uid && trial.state === "failed" && !trial.isInfraFailure;
    return [
      omitUndefined({
        scorer_uid: scorer.uid,
        scorer_id: scorer.id,
        scorer_name: scorer.name,
        status: state,
        classification: classification ?? undefined,
        score: score ?? undefined,
        outcome: score !== null ? outcomeOf(score, scorer.threshold) : isAgentFailure ? "fail" : undefined,
        reason: reason ?? undefined,
      }),
    ];
  });

function metricsJson({ costMicros, wallTimeMs, totalTokens, usage, attemptCount }: TrialRecord): JsonObject {
  const credits = attemptCount === 0 ? null : NO_CREDITS;
  const ifStarted = <T>(value: T): T | null => (attemptCount === 0 ? null : value);
  return {
    total_credits: credits,
    compute_credits: credits,
    platform_credits: credits,
    ...(usage !== null && { inference: usage }),
    dollars: ifStarted(dollars(costMicros)),
    wall_time_s: ifStarted(seconds(wallTimeMs)),
    total_tokens: ifStarted(totalTokens),
  };
}

/** Returns the attempts of a trial that have a run; an attempt without one is being dispatched. */
const attemptsJson = ({ attempts }: TrialRecord): JsonObject[] =>
  attempts.flatMap(({ attemptNumber, runUid, state, errorCode }) =>
    runUid === null
      ? []
      : [
          {
            attempt_number: attemptNumber,
            run_id: runUid,
            state,
            ...(errorCode !== null && { error_code: errorCode }),
          },
        ],
  );

const JUDGE_STATES: Partial<Record<ScoreState, TrialState>> = {
  judging: "running",
  scored: "succeeded",
  finished_unscored: "failed",
};

/** Returns the judge runs of a trial. Scores of rules that need no run have none. */
const judgeRunsJson = ({ scores }: TrialRecord): JsonObject[] =>
  scores.flatMap(({ judgeRunUid, scorerUid, state }) =>
    judgeRunUid === null
      ? []
      : [{ run_id: judgeRunUid, scorer_uid: scorerUid, state: JUDGE_STATES[state] ?? "pending" }],
  );
