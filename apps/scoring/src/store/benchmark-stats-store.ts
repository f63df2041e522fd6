import type { Database } from "@millwright/database";
import type { BenchmarkPlan } from "../domain/benchmark-plan.ts";
import type { BenchmarkStats, ScoreGroup, TrialGroup } from "../domain/benchmark-stats.ts";

export type StatsQuery = { readonly runUid: string; readonly plan: BenchmarkPlan };

/** Aggregates the trials and scores of benchmark runs. */
export function benchmarkStatsStore(database: Database) {
  return {
    /**
     * Returns the stats of each benchmark run, in the order of `queries`. `taskUids` restricts the trials. Uses one
     * statement, so that trials and scores are consistent.
     */
    async read(queries: readonly StatsQuery[], taskUids?: readonly string[]): Promise<BenchmarkStats[]> {
      const scorers = queries.flatMap(({ runUid, plan }) =>
        plan.scorers.map(({ uid, threshold }) => ({
          run_uid: runUid,
          scorer_uid: uid,
          threshold,
          is_correctness: uid === plan.correctness?.uid,
        })),
      );
      const { rows } = await database.searches.query<StatsRow>(STATS, [
        queries.map(({ runUid }) => runUid),
        JSON.stringify(scorers),
        taskUids ?? null,
      ]);
      const byRun = new Map(rows.map((row) => [row.run_uid, row]));
      return queries.map(({ runUid }) => {
        const { trials = [], scores = [], scorer_uids: scorerUids = [] } = byRun.get(runUid) ?? {};
        return { trials, scores, scorerUids };
      });
    },
  };
}

export type BenchmarkStatsStore = ReturnType<typeof benchmarkStatsStore>;

type StatsRow = { run_uid: string; trials: TrialGroup[]; scores: ScoreGroup[]; scorer_uids: string[] };

const STATS = `
  WITH scorer AS ( -- those that were deleted have no outcomes
    SELECT g.run_uid, g.scorer_uid, g.threshold, g.is_correctness
      FROM jsonb_to_recordset($2::jsonb) AS g (run_uid uuid, scorer_uid uuid, threshold float8, is_correctness boolean) JOIN scorers s ON s.uid = g.scorer_uid
  ), trial AS (
    SELECT t.*,
           t.state = 'failed' AND NOT t.is_infra_failure AND EXISTS (SELECT 1 FROM scorer g WHERE g.run_uid = t.benchmark_run_uid AND g.is_correctness) AS is_agent_failure
      FROM trials t WHERE t.benchmark_run_uid = ANY ($1::uuid[]) AND ($3::uuid[] IS NULL OR t.task_uid = ANY ($3))
  ), score AS ( -- OFFSET 0: one probe per trial reads all of its scores, instead of one per trial and scorer
    SELECT t.benchmark_run_uid, t.uid, t.configuration_uid, t.task_uid, t.state AS trial_state, s.scorer_uid, s.state, s.score, s.cost_micros,
           s.state = 'scored' AND s.score >= g.threshold AS is_pass, g.is_correctness
      FROM trial t CROSS JOIN LATERAL (SELECT * FROM trial_scores s WHERE s.trial_uid = t.uid OFFSET 0) s
      JOIN scorer g ON g.run_uid = t.benchmark_run_uid AND g.scorer_uid = s.scorer_uid
  ), judged AS ( -- one row per trial that has scores
    SELECT uid,
           bool_or(state IN ('pending', 'judging')) AND bool_and(trial_state = 'succeeded')             AS is_judging,
           bool_and(trial_state = 'succeeded' AND state IN ('scored', 'finished_unscored'))             AS is_finished,
           bool_or(is_pass) FILTER (WHERE is_correctness AND state = 'scored')                          AS is_pass
      FROM score GROUP BY uid
  ), trial_group AS (
    SELECT t.benchmark_run_uid, t.configuration_uid AS "configurationUid", t.task_uid AS "taskUid",
           count(*) FILTER (WHERE t.state = 'pending')   AS pending,
           count(*) FILTER (WHERE t.state = 'running')   AS running,
           count(*) FILTER (WHERE t.state = 'succeeded') AS succeeded,
           count(*) FILTER (WHERE t.state = 'failed')    AS failed,
           count(*) FILTER (WHERE t.state = 'cancelled') AS cancelled,
           count(*) FILTER (WHERE t.attempt_count > 0)   AS started,
           count(*) FILTER (WHERE t.state = 'cancelled' AND t.attempt_count = 0) AS skipped,
           count(*) FILTER (WHERE t.is_infra_failure)    AS "infraFailed",
           sum(greatest(t.attempt_count - 1, 0))         AS retries,
           count(*) FILTER (WHERE t.attempt_count > 1)   AS retried,
           sum(t.cost_micros)                            AS "costMicros",
           sum(t.total_tokens)                           AS "totalTokens",
           sum(t.wall_time_ms)                           AS "wallTimeMs",
           count(*) FILTER (WHERE j.is_judging)          AS judging,
           count(*) FILTER (WHERE j.is_finished)         AS "scoringFinished",
           string_agg(CASE WHEN j.is_pass THEN '1' WHEN NOT j.is_pass OR t.is_agent_failure THEN '0' ELSE '-' END, '' ORDER BY t.rep_index) AS outcomes
      FROM trial t LEFT JOIN judged j ON j.uid = t.uid
     GROUP BY t.benchmark_run_uid, t.configuration_uid, t.task_uid
  ), score_group AS (
    SELECT benchmark_run_uid, configuration_uid AS "configurationUid", task_uid AS "taskUid", scorer_uid AS "scorerUid",
           count(*) FILTER (WHERE state = 'awaiting_trial')    AS awaiting_trial,
           count(*) FILTER (WHERE state = 'pending')           AS pending,
           count(*) FILTER (WHERE state = 'judging')           AS judging,
           count(*) FILTER (WHERE state = 'scored')            AS scored,
           count(*) FILTER (WHERE state = 'finished_unscored') AS finished_unscored,
           count(*) FILTER (WHERE state = 'not_scoreable')     AS not_scoreable,
           count(*) FILTER (WHERE is_pass)                     AS passed,
           coalesce(sum(score::numeric) FILTER (WHERE state = 'scored'), 0) AS "scoreSum",
           sum(cost_micros)                                    AS "costMicros"
      FROM score GROUP BY benchmark_run_uid, configuration_uid, task_uid, scorer_uid
  )
  SELECT r.run_uid,
         coalesce((SELECT json_agg(g) FROM trial_group g WHERE g.benchmark_run_uid = r.run_uid), '[]') AS trials,
         coalesce((SELECT json_agg(g) FROM score_group g WHERE g.benchmark_run_uid = r.run_uid), '[]') AS scores,
         coalesce((SELECT json_agg(g.scorer_uid) FROM scorer g WHERE g.run_uid = r.run_uid), '[]')                 AS scorer_uids
    FROM unnest($1::uuid[]) AS r (run_uid)`;
