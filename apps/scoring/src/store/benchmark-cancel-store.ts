import type { Sql } from "@millwright/database";
import type { BenchmarkRunUid } from "../domain/benchmark-run.ts";

/**
 * Cancels the active trials of a locked benchmark run. Scores that await one of them become not scoreable. Returns the
 * cancelled trials that have a run.
 */
export async function cancelOpenTrials(
  tx: Sql,
  uid: BenchmarkRunUid,
  now: Date,
): Promise<{ trialUid: string; runUid: string }[]> {
  const { rows } = await tx.query<{ uid: string; run_uid: string | null }>(
    "UPDATE trials SET state = 'cancelled', completed_at = $2 WHERE benchmark_run_uid = $1 AND state IN ('pending', 'running') RETURNING uid, run_uid",
    [uid, now],
  );
  await tx.query(
    "UPDATE trial_scores s SET state = 'not_scoreable' FROM trials t WHERE t.uid = s.trial_uid AND t.benchmark_run_uid = $1 AND s.state = 'awaiting_trial'",
    [uid],
  );
  return rows.flatMap((trial) => (trial.run_uid === null ? [] : [{ trialUid: trial.uid, runUid: trial.run_uid }]));
}
