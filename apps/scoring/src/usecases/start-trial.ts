import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import type { TrialRunClient } from "../clients/trial-run-client.ts";
import { trialRunOf } from "../domain/trial-run.ts";
import { findBenchmarkOfTrial } from "../store/benchmark-life-store.ts";
import { findAttempt, type AttemptRef } from "../store/trial-store.ts";
import { bindTrialRun, settleTrial, type RetryDelay } from "./settle-trial.ts";

export type StartTrialDeps = RetryDelay & {
  readonly database: Database;
  readonly clock: Clock;
  readonly runs: Pick<TrialRunClient, "create">;
};

/**
 * Maximum number of tries of one attempt. If all fail, the orchestrator is considered unavailable and the attempt fails
 * for infrastructure reasons.
 */
const TRIES_MAX = 8;

/**
 * Creates the run of a started attempt. The attempt is the cause of the run: if this process dies, the next try finds
 * the existing run, and the run's own event records it as well. No run is created if the attempt has ended or its trial
 * was cancelled.
 *
 * Errors: transient errors of CreateRuns, unless this was the last try.
 */
export async function startTrial(
  { database, clock, runs, retryDelayMs }: StartTrialDeps,
  ref: AttemptRef,
  tries: number,
): Promise<void> {
  const [run, attempt] = await Promise.all([
    findBenchmarkOfTrial(database, ref.trialUid),
    findAttempt(database.sql, ref),
  ]);
  if (!run || !attempt || attempt.state !== "pending") return;
  const end = (ending: "cancelled" | "infrastructure", errorCode: string | null): Promise<void> =>
    database.transaction((tx) => settleTrial(tx, { retryDelayMs }, { ...ref, ending, errorCode }, clock.now()));
  if (attempt.trialState !== "running") return end("cancelled", null);
  try {
    const { runUid, isAtCapacity } = await runs.create(trialRunOf(run, run.manifest, attempt));
    await database.transaction((tx) => bindTrialRun(tx, ref, runUid, isAtCapacity));
  } catch (error) {
    if (!isDomainError(error) || (error.retryable && tries < TRIES_MAX)) throw error;
    await end("infrastructure", error.reason);
  }
}
