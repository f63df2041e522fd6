import type { AttemptState, TriggerSource } from "../domain/attempt.ts";
import type { Result } from "../domain/result.ts";
import type { JsonObject } from "../domain/scorer.ts";

/** Columns of `ResultRow` except `reason`, for the table alias `a`. */
export const RESULT_COLUMNS = `
  a.uid, a.run_uid, a.attempted_at, a.state, a.trigger_source, a.classification, a.score, a.scored_at, a.reason_status, a.conversation_uid, a.title,
  a.judge_run_uid, a.judge_time_ms, a.judge_usage, a.failure_code, a.failure_message,
  EXISTS (SELECT 1 FROM attempts f WHERE f.scorer_uid = a.scorer_uid AND f.run_uid = a.run_uid AND f.state IN ('pending', 'judging')) AS is_in_flight`;

export type ResultRow = {
  uid: string;
  run_uid: string;
  attempted_at: Date;
  state: AttemptState;
  trigger_source: TriggerSource;
  classification: string | null;
  score: number | null;
  scored_at: Date | null;
  reason: string | null;
  reason_status: Result["reasonStatus"];
  conversation_uid: string | null;
  title: string;
  judge_run_uid: string | null;
  judge_time_ms: number | null;
  judge_usage: JsonObject | null;
  failure_code: string | null;
  failure_message: string | null;
  is_in_flight: boolean;
};

export const toResult = (row: ResultRow): Result => ({
  attemptUid: row.uid,
  runUid: row.run_uid,
  attemptedAt: row.attempted_at,
  status: row.state === "scored" ? "scored" : row.is_in_flight ? "in_flight" : "failed",
  isInFlight: row.is_in_flight,
  triggerSource: row.trigger_source,
  classification: row.classification,
  score: row.score,
  scoredAt: row.scored_at,
  reason: row.reason,
  reasonStatus: row.reason_status,
  conversationUid: row.conversation_uid,
  title: row.title,
  judgeRunUid: row.judge_run_uid,
  judgeTimeMs: row.judge_time_ms,
  judgeUsage: row.judge_usage,
  failure:
    row.state === "failed" && !row.is_in_flight
      ? { code: row.failure_code!, message: row.failure_message ?? "" }
      : null,
});
