import type { Database } from "@millwright/database";
import type { JsonValue } from "@millwright/json";
import type { TrialState } from "../domain/benchmark-run.ts";
import type { TrialAttemptRecord, TrialRecord, TrialScoreRecord } from "../domain/trial-record.ts";

export type TrialFilter = { readonly configurationUids: readonly string[]; readonly states: readonly TrialState[] };

/** Reads trials with their scores and attempts, as in their public records. */
export function trialRecordStore(database: Database) {
  const select = async (where: string, params: readonly unknown[]): Promise<TrialRecord[]> => {
    const { rows } = await database.sql.query<TrialRow>(`SELECT ${COLUMNS} FROM trials t WHERE ${where}`, params);
    return rows.map(toRecord);
  };
  return {
    /** Returns trials in the order of the manifest, after a position. An empty filter matches all trials. */
    list: (
      runUid: string,
      { configurationUids, states }: TrialFilter,
      page: { after: number; limit: number },
    ): Promise<TrialRecord[]> =>
      select(
        `t.benchmark_run_uid = $1 AND t.position > $2 AND (cardinality($3::uuid[]) = 0 OR t.configuration_uid = ANY ($3)) AND (cardinality($4::text[]) = 0 OR t.state = ANY ($4))
          ORDER BY t.position LIMIT $5`,
        [runUid, page.after, configurationUids, states, page.limit],
      ),

    find: async (runUid: string, uid: string): Promise<TrialRecord | undefined> =>
      (await select("t.benchmark_run_uid = $1 AND t.uid = $2", [runUid, uid]))[0],

    /** Returns the trial that has an attempt with this run. */
    findByRun: async (runUid: string, agentRunUid: string): Promise<TrialRecord | undefined> =>
      (
        await select(
          "t.benchmark_run_uid = $1 AND t.uid IN (SELECT a.trial_uid FROM trial_attempts a WHERE a.run_uid = $2) ORDER BY t.position LIMIT 1",
          [runUid, agentRunUid],
        )
      )[0],
  };
}

export type TrialRecordStore = ReturnType<typeof trialRecordStore>;

/**
 * The reason is that of the attempt whose verdict is the score. It is null once a later attempt for the same run has
 * replaced that attempt.
 */
const COLUMNS = `
  t.uid, t.id, t.position, t.configuration_uid, t.task_uid, t.rep_index, t.state, t.terminal_reason, t.is_infra_failure, t.run_uid, t.attempt_count, t.cost_micros,
  t.total_tokens, t.wall_time_ms, t.usage, t.created_at, t.started_at, t.completed_at,
  coalesce((SELECT jsonb_agg(jsonb_build_object('scorerUid', s.scorer_uid, 'state', s.state, 'classification', s.classification, 'score', s.score,
                     'judgeRunUid', s.judge_run_uid, 'reason', CASE WHEN s.state = 'scored' THEN a.reason END) ORDER BY s.scorer_uid)
              FROM trial_scores s LEFT JOIN attempts a ON a.trial_uid = s.trial_uid AND a.scorer_uid = s.scorer_uid AND a.state = 'scored'
             WHERE s.trial_uid = t.uid), '[]') AS scores,
  coalesce((SELECT jsonb_agg(jsonb_build_object('attemptNumber', a.attempt_number, 'runUid', a.run_uid, 'state', a.state, 'errorCode', a.error_code) ORDER BY a.attempt_number)
              FROM trial_attempts a WHERE a.trial_uid = t.uid), '[]') AS attempts`;

type TrialRow = {
  uid: string;
  id: number;
  position: number;
  configuration_uid: string;
  task_uid: string;
  rep_index: number;
  state: TrialState;
  terminal_reason: "timeout" | "failure" | null;
  is_infra_failure: boolean;
  run_uid: string | null;
  attempt_count: number;
  cost_micros: number;
  total_tokens: number;
  wall_time_ms: number;
  usage: JsonValue;
  created_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
  scores: TrialScoreRecord[];
  attempts: TrialAttemptRecord[];
};

const toRecord = (row: TrialRow): TrialRecord => ({
  uid: row.uid,
  id: row.id,
  position: row.position,
  configurationUid: row.configuration_uid,
  taskUid: row.task_uid,
  repIndex: row.rep_index,
  state: row.state,
  terminalReason: row.terminal_reason,
  isInfraFailure: row.is_infra_failure,
  runUid: row.run_uid,
  attemptCount: row.attempt_count,
  costMicros: row.cost_micros,
  totalTokens: row.total_tokens,
  wallTimeMs: row.wall_time_ms,
  usage: row.usage,
  createdAt: row.created_at,
  startedAt: row.started_at,
  completedAt: row.completed_at,
  scores: row.scores,
  attempts: row.attempts,
});
