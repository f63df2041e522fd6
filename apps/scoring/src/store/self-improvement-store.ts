import type { Database, Sql } from "@millwright/database";
import { as } from "@millwright/ids";
import type { Scorer, ScorerUid } from "../domain/scorer.ts";
import {
  SELF_IMPROVEMENT_DEFAULTS,
  type SelfImprovementSettings,
  type SelfImprovementView,
} from "../domain/self-improvement.ts";

type Row = {
  scorer_uid: string;
  failure_threshold: number;
  failure_age_days: number;
  runs_per_week: number;
  cost_limit_micros: number;
  created_at: Date;
  updated_at: Date;
  unreviewed: number;
  last_run_uid: string | null;
  last_run_at: Date | null;
};

/** Reads the self-improvement of scorers. A scorer has a row while self-improvement is enabled. */
export function selfImprovementStore(database: Database) {
  return {
    async find(uid: ScorerUid): Promise<SelfImprovementView | undefined> {
      const { rows } = await database.sql.query<Row>(
        `SELECT i.*, r.run_uid AS last_run_uid, r.started_at AS last_run_at,
                (SELECT count(*) FROM attempts a
                  WHERE a.scorer_uid = s.uid AND a.is_current AND a.state = 'scored' AND a.reviewed_at IS NULL AND a.score < s.threshold) AS unreviewed
           FROM self_improvements i
           JOIN scorers s ON s.uid = i.scorer_uid
           LEFT JOIN LATERAL (SELECT run_uid, started_at FROM self_improvement_runs WHERE scorer_uid = s.uid ORDER BY started_at DESC LIMIT 1) r ON true
          WHERE i.scorer_uid = $1`,
        [uid],
      );
      return rows[0] && toView(rows[0]);
    },
  };
}

export type SelfImprovementStore = ReturnType<typeof selfImprovementStore>;

/** Creates the self-improvement of a scorer with defaults if it is enabled and absent. Deletes it if it is disabled. */
export async function syncSelfImprovement(tx: Sql, { uid, selfImprovementEnabled, updatedAt }: Scorer): Promise<void> {
  if (!selfImprovementEnabled) await tx.query("DELETE FROM self_improvements WHERE scorer_uid = $1", [uid]);
  else await tx.query(`${INSERT} ON CONFLICT DO NOTHING`, values(uid, SELF_IMPROVEMENT_DEFAULTS, updatedAt));
}

/** Creates or replaces the self-improvement of a scorer. */
export async function putSelfImprovement(
  tx: Sql,
  uid: ScorerUid,
  settings: SelfImprovementSettings,
  now: Date,
): Promise<void> {
  await tx.query(
    `${INSERT} ON CONFLICT (scorer_uid) DO UPDATE SET failure_threshold = excluded.failure_threshold, failure_age_days = excluded.failure_age_days,
       runs_per_week = excluded.runs_per_week, cost_limit_micros = excluded.cost_limit_micros, updated_at = excluded.updated_at`,
    values(uid, settings, now),
  );
}

const INSERT = `
  INSERT INTO self_improvements (scorer_uid, failure_threshold, failure_age_days, runs_per_week, cost_limit_micros, created_at, updated_at)
  VALUES ($1, $2, $3, $4, $5, $6, $6)`;

const values = (uid: ScorerUid, settings: SelfImprovementSettings, now: Date): unknown[] => [
  uid,
  settings.failureThreshold,
  settings.failureAgeDays,
  settings.runsPerWeek,
  settings.costLimitMicros,
  now,
];

const toView = (row: Row): SelfImprovementView => ({
  scorerUid: as<ScorerUid>(row.scorer_uid),
  failureThreshold: row.failure_threshold,
  failureAgeDays: row.failure_age_days,
  runsPerWeek: row.runs_per_week,
  costLimitMicros: row.cost_limit_micros,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  unreviewedFailures: row.unreviewed,
  lastRunUid: row.last_run_uid,
  lastRunAt: row.last_run_at,
});
