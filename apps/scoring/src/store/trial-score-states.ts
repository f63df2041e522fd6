import type { Sql } from "@millwright/database";
import type { NewAttempt } from "./attempt-store.ts";

/** Sets the scores of trials whose attempts have started to pending, even if they had a result. */
export async function markTrialScoresPending(tx: Sql, attempts: readonly NewAttempt[]): Promise<void> {
  const ofTrials = attempts.filter(({ trialUid }) => trialUid !== null);
  if (ofTrials.length === 0) return;
  await tx.query(
    `UPDATE trial_scores t SET state = 'pending', classification = NULL, score = NULL, judge_run_uid = NULL, cost_micros = 0
       FROM jsonb_to_recordset($1::jsonb) AS s (trial_uid uuid, scorer_uid uuid)
      WHERE t.trial_uid = s.trial_uid AND t.scorer_uid = s.scorer_uid`,
    [JSON.stringify(ofTrials.map(({ trialUid, scorerUid }) => ({ trial_uid: trialUid, scorer_uid: scorerUid })))],
  );
}
