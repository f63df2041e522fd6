import type { Database, Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";
import type { Failure, Improvement } from "../domain/improvement-run.ts";

/** Identifies the failures of one agent by one scorer. */
export type FailureGroup = { readonly scorerUid: string; readonly agentUid: string };
export type DecidedImprovement = { readonly uid: string; readonly teamUid: string };
export type StoredImprovement = Improvement & {
  readonly requester: { readonly type: string; readonly uid: string };
  readonly runUid: string | null;
};

/** Maximum number of failures listed in a run; the group can have more. */
const FAILURES_MAX = 50;
const GROUPS_MAX = 100;

const UNREVIEWED =
  "a.is_current AND a.state = 'scored' AND a.reviewed_at IS NULL AND a.agent_uid IS NOT NULL AND a.score < s.threshold";

/**
 * SQL for the groups that start a run: there are enough failures or the oldest is old enough, and the weekly limit of
 * runs is not reached. $1: now.
 */
const DUE = `
  SELECT a.scorer_uid, a.agent_uid FROM self_improvements i
    JOIN scorers s ON s.uid = i.scorer_uid AND s.self_improvement_enabled
    JOIN attempts a ON a.scorer_uid = i.scorer_uid AND ${UNREVIEWED}
   WHERE (SELECT count(*) FROM self_improvement_runs r WHERE r.scorer_uid = i.scorer_uid AND r.started_at > $1::timestamptz - interval '7 days') < i.runs_per_week
     AND ($2::uuid IS NULL OR (a.scorer_uid = $2 AND a.agent_uid = $3))
   GROUP BY i.scorer_uid, a.scorer_uid, a.agent_uid
  HAVING count(*) >= i.failure_threshold OR min(a.scored_at) < $1::timestamptz - i.failure_age_days * interval '1 day'
   ORDER BY min(a.scored_at), a.agent_uid LIMIT ${GROUPS_MAX}`;

/** Reads and writes self-improvement runs and their failures. */
export function improvementStore(database: Database) {
  return {
    async due(now: Date): Promise<FailureGroup[]> {
      const { rows } = await database.sql.query<{ scorer_uid: string; agent_uid: string }>(DUE, [now, null, null]);
      return rows.map((row) => ({ scorerUid: row.scorer_uid, agentUid: row.agent_uid }));
    },

    /**
     * Returns an improvement with its failures, without those whose scores were replaced since. Returns undefined if
     * its scorer was deleted.
     */
    async find(uid: string): Promise<StoredImprovement | undefined> {
      const { rows } = await database.sql.query<Row>(
        `SELECT r.uid, r.agent_uid, r.run_uid, r.started_at, s.uid AS scorer_uid, s.name, s.scoring_prompt, s.factory_uid, s.team_uid, s.creator_type, s.creator_uid, i.cost_limit_micros
           FROM self_improvement_runs r JOIN scorers s ON s.uid = r.scorer_uid JOIN self_improvements i ON i.scorer_uid = s.uid WHERE r.uid = $1`,
        [uid],
      );
      return rows[0] && toImprovement(rows[0], await failuresOf(database.sql, rows[0]));
    },

    setRun: async (uid: string, runUid: string): Promise<void> =>
      void (await database.sql.query("UPDATE self_improvement_runs SET run_uid = $2 WHERE uid = $1", [uid, runUid])),

    /**
     * Marks the failures of a run that could not be created as unreviewed, for the next run. The failed run still
     * counts towards the weekly limit.
     */
    reopen: async (uid: string): Promise<void> =>
      void (await database.sql.query(
        `UPDATE attempts a SET reviewed_at = NULL FROM self_improvement_runs r
          WHERE r.uid = $1 AND a.scorer_uid = r.scorer_uid AND a.agent_uid = r.agent_uid AND a.reviewed_at = r.started_at`,
        [uid],
      )),
  };
}

export type ImprovementStore = ReturnType<typeof improvementStore>;

/**
 * Decides to start a run for a group that is still due: marks its failures as reviewed and counts the run towards the
 * weekly limit. Returns undefined if the group is no longer due. Decisions about one scorer are serialised.
 */
export async function decideImprovement(
  tx: Sql,
  { scorerUid, agentUid }: FailureGroup,
  now: Date,
): Promise<DecidedImprovement | undefined> {
  const { rows: locked } = await tx.query("SELECT 1 FROM self_improvements WHERE scorer_uid = $1 FOR UPDATE", [
    scorerUid,
  ]);
  if (locked.length === 0) return undefined;
  const { rowCount } = await tx.query(DUE, [now, scorerUid, agentUid]);
  if (rowCount === 0) return undefined;
  const { rows } = await tx.query<{ team_uid: string }>(
    `UPDATE attempts a SET reviewed_at = $3 FROM scorers s WHERE s.uid = a.scorer_uid AND a.scorer_uid = $1 AND a.agent_uid = $2 AND ${UNREVIEWED} RETURNING a.team_uid`,
    [scorerUid, agentUid, now],
  );
  const uid = newUid();
  await tx.query("INSERT INTO self_improvement_runs (uid, scorer_uid, agent_uid, started_at) VALUES ($1, $2, $3, $4)", [
    uid,
    scorerUid,
    agentUid,
    now,
  ]);
  return rows[0] && { uid, teamUid: rows[0].team_uid };
}

type Row = {
  uid: string;
  agent_uid: string;
  run_uid: string | null;
  started_at: Date;
  scorer_uid: string;
  name: string;
  scoring_prompt: string;
  factory_uid: string;
  team_uid: string;
  creator_type: string;
  creator_uid: string;
  cost_limit_micros: number;
};

/** Returns failures, newest first. Their `reviewed_at` equals the start time of the run. */
async function failuresOf(
  sql: Sql,
  { scorer_uid: scorerUid, agent_uid: agentUid, started_at: startedAt }: Row,
): Promise<Failure[]> {
  const { rows } = await sql.query<{
    run_uid: string;
    title: string;
    classification: string;
    score: number;
    reason: string | null;
    scored_at: Date;
  }>(
    `SELECT run_uid, title, classification, score, reason, scored_at FROM attempts
      WHERE scorer_uid = $1 AND agent_uid = $2 AND reviewed_at = $3 AND is_current AND state = 'scored' ORDER BY scored_at DESC, uid DESC LIMIT ${FAILURES_MAX}`,
    [scorerUid, agentUid, startedAt],
  );
  return rows.map((row) => ({
    runUid: row.run_uid,
    title: row.title,
    classification: row.classification,
    score: row.score,
    reason: row.reason,
    scoredAt: row.scored_at,
  }));
}

const toImprovement = (row: Row, failures: readonly Failure[]): StoredImprovement => ({
  uid: row.uid,
  scorerName: row.name,
  scoringPrompt: row.scoring_prompt,
  factoryUid: row.factory_uid,
  teamUid: row.team_uid,
  agentUid: row.agent_uid,
  costLimitMicros: row.cost_limit_micros,
  failures,
  requester: { type: row.creator_type, uid: row.creator_uid },
  runUid: row.run_uid,
});
