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

/** Kind of work that cancels the run of a trial; its key is the run. */
export const CANCEL_TRIAL_RUN = "cancel-trial-run";

/** How long the next attempt waits after an infrastructure failure. */
export type RetryDelay = { readonly retryDelayMs: number };

/** Names an attempt by its run, or, while it has none, by its number. */
export type EndedAttempt = (AttemptRef | { readonly runUid: string }) & {
  readonly ending: Ending;
  readonly errorCode: string | null;
};

/**
 * Ends an attempt in the caller's transaction, and its trial unless another attempt follows. Attempts that have ended, and runs of no attempt, change
 * nothing: duplicate and late events are harmless.
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
  const attempt = run && (await find()); // as it is now that no one else changes it
  if (!run || !attempt || ("attemptNumber" in ended && attempt.state !== "pending")) return;
  const { attemptState, next } = decideAttempt(ended.ending, attempt.attemptNumber, run.state);
  await endAttempt(tx, attempt, attemptState, ended.errorCode, now);
  if (attempt.trialState !== "running") return enqueueCompletions(tx, run.teamUid, [attempt.trialUid]); // cancelled with its benchmark
  if (next === "retry") {
    const retry = { trialUid: attempt.trialUid, attemptNumber: attempt.attemptNumber + 1 };
    await addTrialAttempt(tx, retry, now);
    return enqueueStarts(tx, run.teamUid, [retry], new Date(now.getTime() + retryDelayMs * attempt.attemptNumber));
  }
  await endTrial(tx, attempt.trialUid, next, now);
  await enqueueCompletions(tx, run.teamUid, [attempt.trialUid]);
}

/**
 * Records the run that an attempt has. Its creator and the run's event both report it, in any order. A run whose attempt has ended before, such as
 * by a cancel, is cancelled.
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
