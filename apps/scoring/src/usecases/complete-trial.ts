import type { Clock } from "@millwright/clock";
import type { Database, Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { MeasuredRun, TrialRunClient } from "../clients/trial-run-client.ts";
import { scoringOf } from "../domain/trial-scoring.ts";
import { sumUsage } from "../domain/usage-sum.ts";
import { findBenchmarkOfTrial, lockBenchmark } from "../store/benchmark-life-store.ts";
import {
  endScores,
  findEndedTrial,
  storeTrialFigures,
  type EndedTrial,
  type TrialFigures,
} from "../store/trial-store.ts";
import { startAttempts, type RunFacts } from "./start-attempts.ts";

export type CompleteTrialDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly runs: Pick<TrialRunClient, "describe">;
};

/**
 * Maximum number of tries. If another judge of the same scorer and run has not ended by then, the score ends without a
 * result.
 */
const TRIES_MAX = 8;

/**
 * Reads the figures of a terminal trial, summed over its attempts, and starts the judges of its scores. Idempotent: a
 * repetition starts no judge twice.
 *
 * Errors: those of DescribeRuns · judge_in_flight (unavailable): another attempt of the same scorer and run is in
 * flight.
 */
export async function completeTrial(
  { database, clock, runs }: CompleteTrialDeps,
  trialUid: string,
  tries: number,
): Promise<void> {
  const [benchmark, ended] = await Promise.all([
    findBenchmarkOfTrial(database, trialUid),
    findEndedTrial(database.sql, trialUid),
  ]);
  if (!benchmark || !ended) return;
  const measured = ended.attemptRunUids.length > 0 ? await runs.describe(ended.attemptRunUids) : [];
  const waiting = await database.transaction(async (tx) => {
    await lockBenchmark(tx, benchmark.uid);
    const trial = await findEndedTrial(tx, trialUid);
    if (!trial) return [];
    await storeTrialFigures(tx, trialUid, figuresOf(measured), clock.now());
    const facts = measured.find(({ uid }) => uid === trial.runUid);
    if (facts) return startJudges(tx, { benchmark, trial, facts }, clock.now());
    await endScores(tx, trialUid, trial.pendingScorerUids);
    return [];
  });
  if (waiting.length === 0) return;
  if (tries >= TRIES_MAX) return endScores(database.sql, trialUid, waiting);
  throw new DomainError({
    kind: "unavailable",
    reason: "judge_in_flight",
    message: "Another judge of the same scorer and run is still active. Retry after it has ended.",
  });
}

type Scored = {
  readonly benchmark: NonNullable<Awaited<ReturnType<typeof findBenchmarkOfTrial>>>;
  readonly trial: EndedTrial;
  readonly facts: RunFacts;
};

/** Starts the judges. Returns the scorers whose judges could not start yet. */
async function startJudges(tx: Sql, { benchmark, trial, facts }: Scored, now: Date): Promise<string[]> {
  const requests = trial.pendingScorerUids.map((scorerUid) => ({
    ...scoringOf(benchmark.manifest, trial.taskUid, scorerUid),
    run: facts,
    trigger: "benchmark" as const,
    requester: benchmark.creator,
    trialUid: trial.trialUid,
  }));
  const outcomes = await startAttempts(tx, requests, now);
  return trial.pendingScorerUids.filter((_uid, n) => outcomes[n]!.outcome === "in_flight");
}

/**
 * Returns the sum of the figures, or undefined if none of the runs is known, in which case the stored figures are
 * final.
 */
function figuresOf(measured: readonly MeasuredRun[]): TrialFigures | undefined {
  if (measured.length === 0) return undefined;
  const sum = (figure: "costMicros" | "totalTokens" | "wallTimeMs"): number =>
    measured.reduce((total, run) => total + run[figure], 0);
  return {
    costMicros: sum("costMicros"),
    totalTokens: sum("totalTokens"),
    wallTimeMs: sum("wallTimeMs"),
    usage: sumUsage(measured.map(({ usage }) => usage)),
  };
}
