import type { Database, Sql } from "@millwright/database";
import type { BenchmarkRunState } from "../domain/benchmark-run.ts";
import type { Manifest } from "../domain/manifest.ts";
import type { TeamLoad, TrialCounts } from "../domain/trial.ts";

/** The part of a benchmark run that its execution needs. */
export type BenchmarkLife = {
  readonly uid: string;
  readonly state: BenchmarkRunState;
  readonly suiteUid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly agentUid: string;
  readonly parallelism: number;
  readonly replayedRunUid: string | null;
  readonly creator: { readonly type: string; readonly uid: string };
};

/**
 * Locks a benchmark run until the transaction ends. Every change of its state or its trials takes this lock first, so
 * that changes are serialised and a cancelled benchmark run starts no trial. With `SKIP LOCKED`, it also returns
 * undefined while another transaction has the lock.
 */
export async function lockBenchmark(
  tx: Sql,
  uid: string,
  wait: "" | "SKIP LOCKED" = "",
): Promise<BenchmarkLife | undefined> {
  const { rows } = await tx.query<LifeRow>(
    `SELECT ${LIFE_COLUMNS} FROM benchmark_runs b WHERE b.uid = $1 FOR NO KEY UPDATE ${wait}`,
    [uid],
  );
  return rows.map(toLife)[0];
}

/** Returns the benchmark run of a trial with its manifest, without a lock. */
export async function findBenchmarkOfTrial(
  database: Database,
  trialUid: string,
): Promise<(BenchmarkLife & { readonly manifest: Manifest }) | undefined> {
  const { rows } = await database.sql.query<LifeRow & { manifest: Manifest }>(
    `SELECT ${LIFE_COLUMNS}, b.manifest FROM trials t JOIN benchmark_runs b ON b.uid = t.benchmark_run_uid WHERE t.uid = $1`,
    [trialUid],
  );
  return rows.map((row) => ({ ...toLife(row), manifest: row.manifest }))[0];
}

/** Returns active benchmark runs that can start a trial or may have reached their next state, oldest first. */
export async function findDueBenchmarks(database: Database): Promise<string[]> {
  const { rows } = await database.sql.query<{ uid: string }>(
    `SELECT b.uid FROM benchmark_runs b CROSS JOIN LATERAL (${COUNTS}) c
      WHERE b.state IN ('pending', 'running', 'scoring')
        AND (b.state = 'pending'
          OR (c.pending > 0 AND c.running < b.parallelism)
          OR (c.pending + c.running = 0 AND (b.state = 'running' OR c.unmeasured + c.open_scores = 0)))
      ORDER BY b.created_at`,
  );
  return rows.map(({ uid }) => uid);
}

export async function countTrials(tx: Sql, uid: string): Promise<TrialCounts> {
  const { rows } = await tx.query<
    Omit<TrialCounts, "infraFailed" | "openScores"> & { infra_failed: number; open_scores: number }
  >(`SELECT c.* FROM benchmark_runs b CROSS JOIN LATERAL (${COUNTS}) c WHERE b.uid = $1`, [uid]);
  const { infra_failed: infraFailed, open_scores: openScores, ...counts } = rows[0]!;
  return { ...counts, infraFailed, openScores };
}

/**
 * Locks the team until the transaction ends, so that decisions about its capacity are serialised. Returns the number of
 * its running trials.
 */
export async function lockTeamLoad(tx: Sql, teamUid: string): Promise<TeamLoad> {
  await tx.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`trials of team ${teamUid}`]);
  const { rows } = await tx.query<{ running: number; is_queueing: boolean }>(
    `SELECT count(*) AS running, coalesce(bool_or(a.at_capacity), false) AS is_queueing
       FROM benchmark_runs b JOIN trials t ON t.benchmark_run_uid = b.uid AND t.state = 'running'
       LEFT JOIN trial_attempts a ON a.trial_uid = t.uid AND a.attempt_number = t.attempt_count
      WHERE b.team_uid = $1 AND b.state IN ('pending', 'running', 'scoring')`,
    [teamUid],
  );
  return { running: rows[0]!.running, isQueueing: rows[0]!.is_queueing };
}

/** Sets the state of a locked benchmark run, and its completion time if the state is terminal. */
export async function setBenchmarkState(
  tx: Sql,
  uid: string,
  state: BenchmarkRunState,
  now: Date,
  incompleteReason?: string,
): Promise<void> {
  await tx.query(
    `UPDATE benchmark_runs SET state = $2, updated_at = $3, started_at = coalesce(started_at, $3), incomplete_reason = $4,
            completed_at = CASE WHEN $2 IN ('completed', 'failed', 'cancelled') THEN $3 END
      WHERE uid = $1`,
    [uid, state, now, incompleteReason ?? null],
  );
}

const COUNTS = `
  SELECT count(*)                                      AS total,
         count(*) FILTER (WHERE t.state = 'pending')   AS pending,
         count(*) FILTER (WHERE t.state = 'running')   AS running,
         count(*) FILTER (WHERE t.is_infra_failure)    AS infra_failed,
         count(*) FILTER (WHERE t.state NOT IN ('pending', 'running') AND t.measured_at IS NULL) AS unmeasured,
         coalesce(sum((SELECT count(*) FROM trial_scores s WHERE s.trial_uid = t.uid AND s.state IN ('awaiting_trial', 'pending', 'judging'))), 0)::bigint AS open_scores
    FROM trials t WHERE t.benchmark_run_uid = b.uid`;

const LIFE_COLUMNS = `b.uid, b.state, b.suite_uid, b.factory_uid, b.team_uid, b.agent_uid, b.parallelism, b.replayed_run_uid, b.creator_type, b.creator_uid`;

type LifeRow = {
  uid: string;
  state: BenchmarkRunState;
  suite_uid: string;
  factory_uid: string;
  team_uid: string;
  agent_uid: string;
  parallelism: number;
  replayed_run_uid: string | null;
  creator_type: string;
  creator_uid: string;
};

const toLife = (row: LifeRow): BenchmarkLife => ({
  uid: row.uid,
  state: row.state,
  suiteUid: row.suite_uid,
  factoryUid: row.factory_uid,
  teamUid: row.team_uid,
  agentUid: row.agent_uid,
  parallelism: row.parallelism,
  replayedRunUid: row.replayed_run_uid,
  creator: { type: row.creator_type, uid: row.creator_uid },
});
