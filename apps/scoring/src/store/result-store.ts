import type { Database } from "@millwright/database";
import type { Period } from "@millwright/periods";
import type { Result, ResultPosition, RunScore } from "../domain/result.ts";
import type { ScorerUid } from "../domain/scorer.ts";
import { RESULT_COLUMNS, toResult, type ResultRow } from "./result-rows.ts";

export type ScorerStats = {
  readonly scorerUid: string;
  readonly resultCount: number;
  readonly lastScoredAt: Date | null;
  /** Scores, newest first. */
  readonly recentScores: readonly number[];
};
export type PeriodCount = { readonly passCount: number; readonly failCount: number; readonly costMicros: number };

/** Reads results: the current attempt of each pair of scorer and run. */
export function resultStore(database: Database) {
  return {
    /** Returns results, newest first, ties ordered by attempt uid. Reasons are large and only returned if requested. */
    async list(
      uid: ScorerUid,
      query: { runUids?: readonly string[]; after?: ResultPosition | undefined; limit?: number; withReasons: boolean },
    ): Promise<Result[]> {
      const { runUids = null, after, limit = null } = query;
      const { rows } = await database.searches.query<ResultRow>(
        `SELECT ${RESULT_COLUMNS}, ${query.withReasons ? "a.reason" : "NULL AS reason"}
           FROM attempts a
          WHERE a.scorer_uid = $1 AND a.is_current
            ${runUids === null ? "" : "AND a.run_uid = ANY ($2::uuid[])"}
            ${after ? "AND (a.attempted_at, a.uid) < ($2::timestamptz, $3::uuid)" : ""}
          ORDER BY a.attempted_at DESC, a.uid DESC
          ${limit === null ? "" : `LIMIT ${Math.trunc(limit)}`}`,
        [uid, ...(runUids === null ? [] : [runUids]), ...(after ? [after.attemptedAt, after.attemptUid] : [])],
      );
      return rows.map(toResult);
    },

    /** Returns the current attempts of a run, newest first, ties ordered by attempt uid. */
    async listOfRun(runUid: string): Promise<RunScore[]> {
      const { rows } = await database.searches.query<
        ResultRow & { scorer_id: number; scorer_uid: string; scorer_name: string }
      >(
        `SELECT ${RESULT_COLUMNS}, NULL AS reason, s.id AS scorer_id, s.uid AS scorer_uid, s.name AS scorer_name
           FROM attempts a JOIN scorers s ON s.uid = a.scorer_uid
          WHERE a.run_uid = $1 AND a.is_current
          ORDER BY a.attempted_at DESC, a.uid DESC`,
        [runUid],
      );
      return rows.map((row) => ({
        ...toResult(row),
        scorerId: row.scorer_id,
        scorerUid: row.scorer_uid,
        scorerName: row.scorer_name,
      }));
    },

    /** Returns all-time counts, the time of the last score, and the newest scores of each scorer. */
    async stats(uids: readonly ScorerUid[], recent: number): Promise<ScorerStats[]> {
      if (uids.length === 0) return [];
      const { rows } = await database.searches.query<{
        uid: string;
        count: number;
        last: Date | null;
        recent: number[];
      }>(
        `SELECT u.uid, r.recent,
                (SELECT coalesce(sum(c.scores), 0)::bigint FROM score_counts c WHERE c.scorer_uid = u.uid) AS count,
                (SELECT a.scored_at FROM attempts a WHERE a.scorer_uid = u.uid AND ${LIVE_SCORE} ORDER BY a.scored_at DESC LIMIT 1) AS last
           FROM unnest($1::uuid[]) AS u (uid)
          CROSS JOIN LATERAL (SELECT coalesce(array_agg(n.score), '{}') AS recent
                                FROM (SELECT a.score FROM attempts a WHERE a.scorer_uid = u.uid AND ${LIVE_SCORE}
                                       ORDER BY a.scored_at DESC, a.uid DESC LIMIT $2) n) r`,
        [uids, recent],
      );
      return rows.map((row) => ({
        scorerUid: row.uid,
        resultCount: row.count,
        lastScoredAt: row.last,
        recentScores: row.recent,
      }));
    },

    /** Returns one count per period. Scores of at least the threshold pass. */
    async countPeriods(uid: ScorerUid, threshold: number, periods: readonly Period[]): Promise<PeriodCount[]> {
      const { rows } = await database.searches.query<{ pass: number; fail: number; cost: number }>(
        `SELECT c.pass, c.fail, c.cost
           FROM unnest($3::timestamptz[], $4::timestamptz[]) WITH ORDINALITY AS p (starts, ends, n)
          CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE a.score >= $2) AS pass, count(*) FILTER (WHERE a.score < $2) AS fail,
                                     coalesce(sum(a.cost_micros), 0)::bigint AS cost
                                FROM attempts a
                               WHERE a.scorer_uid = $1 AND ${LIVE_SCORE} AND a.scored_at >= p.starts AND a.scored_at < p.ends) c
          ORDER BY p.n`,
        [uid, threshold, periods.map(({ from }) => from.toISOString()), periods.map(({ to }) => to.toISOString())],
      );
      return rows.map((row) => ({ passCount: row.pass, failCount: row.fail, costMicros: row.cost }));
    },
  };
}

export type ResultStore = ReturnType<typeof resultStore>;

const LIVE_SCORE = "a.is_current AND a.state = 'scored'";
