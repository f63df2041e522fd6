import type { Sql } from "@millwright/database";
import { enqueueWork } from "@millwright/work";
import type { CancelTrialRun } from "../domain/benchmark-run.ts";
import type { Ending } from "../domain/infra-failure.ts";
import { decideAttempt } from "../domain/trial.ts";
import { lockBenchmark } from "../store/benchmark-life-store.ts";
import {
  addTrialAttempt,
  bindAttempt,
  endAttempt,
  endTrial,
  findAttempt,
  findAttemptOfRun,
  type AttemptRef,
} from "../store/trial-store.ts";
import { enqueueCompletions, enqueueStarts } from "./advance-benchmark.ts";

/** Kind of work item that cancels the run of a trial. Its key is the run. */
export const CANCEL_TRIAL_RUN = "cancel-trial-run";

/**
 * Delay of the first retry after an infrastructure failure, in milliseconds; multiplied by the number of the attempt.
 */
export type RetryDelay = { readonly retryDelayMs: number };

/** An attempt that ended, identified by its run or, if it has none, by its number. */
export type EndedAttempt = (AttemptRef | { readonly runUid: string }) & {
  readonly ending: Ending;
  readonly errorCode: string | null;
};

/**
 * Ends an attempt in the caller's transaction, and its trial unless the attempt is retried. Attempts that have ended
 * and runs without an attempt are ignored, so duplicate and late events have no effect.
 */
export async function settleTrial(
  tx: Sql,
  { retryDelayMs }: RetryDelay,
  ended: EndedAttempt,
  now: Date,
): Promise<void> {
  const find = () => ("runUid" in ended ? findAttemptOfRun(tx, ended.runUid) : findAttempt(tx, ended));
  const found = await find();
  const run = found && (await lockBenchmark(tx, found.benchmarkRunUid));
  const attempt = run && (await find()); // read again under the lock
  if (!run || !attempt || ("attemptNumber" in ended && attempt.state !== "pending")) return;
  const { attemptState, next } = decideAttempt(ended.ending, attempt.attemptNumber, run.state);
  await endAttempt(tx, attempt, attemptState, ended.errorCode, now);
  // cancelled with its benchmark run
  if (attempt.trialState !== "running") return enqueueCompletions(tx, run.teamUid, [attempt.trialUid]);
  if (next === "retry") {
    const retry = { trialUid: attempt.trialUid, attemptNumber: attempt.attemptNumber + 1 };
    await addTrialAttempt(tx, retry, now);
    return enqueueStarts(tx, run.teamUid, [retry], new Date(now.getTime() + retryDelayMs * attempt.attemptNumber));
  }
  await endTrial(tx, attempt.trialUid, next, now);
  await enqueueCompletions(tx, run.teamUid, [attempt.trialUid]);
}

/**
 * Records the run of an attempt. Both the creator of the run and the run's event report it, in any order. If the
 * attempt has ended before, for instance by a cancel, the run is cancelled.
 */
export async function bindTrialRun(tx: Sql, ref: AttemptRef, runUid: string, isAtCapacity = false): Promise<void> {
  const found = await findAttempt(tx, ref);
  const run = found && (await lockBenchmark(tx, found.benchmarkRunUid));
  const attempt = run && (await findAttempt(tx, ref));
  if (!run || !attempt) return;
  await bindAttempt(tx, ref, runUid, isAtCapacity);
  const isLive = attempt.trialState === "running" && (attempt.state === "pending" || attempt.state === "running");
  if (isLive || attempt.runUid !== null) return;
  const payload: CancelTrialRun = { benchmark_run_uid: run.uid, trial_uid: attempt.trialUid, run_uid: runUid };
  await enqueueWork(tx, { kind: CANCEL_TRIAL_RUN, key: runUid, payload, teamUid: run.teamUid });
}
