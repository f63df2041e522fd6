import type { Database } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import type { TrialRunClient } from "../clients/trial-run-client.ts";
import type { CancelTrialRun } from "../domain/benchmark-run.ts";
import { findBenchmarkOfTrial } from "../store/benchmark-life-store.ts";

export type CancelTrialRunDeps = { readonly database: Database; readonly runs: Pick<TrialRunClient, "cancelTree"> };

/**
 * Cancels the run of a trial and all its descendants. Terminal and absent runs are ignored. Errors: run_pending
 * (retryable).
 */
export async function cancelTrialRun(
  { database, runs }: CancelTrialRunDeps,
  { benchmark_run_uid: cause, trial_uid: trialUid, run_uid: runUid }: CancelTrialRun,
): Promise<void> {
  const run = await findBenchmarkOfTrial(database, trialUid);
  if (!run) return;
  await runs.cancelTree(run, runUid, cause).catch((error: unknown) => {
    if (isDomainError(error) && (error.reason === "run_already_finished" || error.kind === "not_found")) return;
    throw error;
  });
}
