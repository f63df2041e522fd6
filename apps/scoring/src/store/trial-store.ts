import type { Sql } from "@millwright/database";
import type { TrialState } from "../domain/benchmark-run.ts";
import type { TrialEnd } from "../domain/trial.ts";

export type AttemptRef = { readonly trialUid: string; readonly attemptNumber: number };

/** One attempt of a trial. */
export type TrialAttempt = AttemptRef & {
  readonly benchmarkRunUid: string;
  readonly trialState: TrialState;
  readonly taskUid: string;
  readonly configurationUid: string;
  readonly state: TrialState;
  readonly runUid: string | null;
};

/** Usage of a trial, summed over its attempts. */
export type TrialFigures = {
  readonly costMicros: number;
  readonly totalTokens: number;
  readonly wallTimeMs: number;
  readonly usage: object | null;
};

/**
 * Starts the first attempts of the next pending trials, in the order of the manifest. The benchmark run must be locked.
 */
export async function startPendingTrials(
  tx: Sql,
  benchmarkRunUid: string,
  limit: number,
  now: Date,
): Promise<AttemptRef[]> {
  const { rows } = await tx.query<{ trial_uid: string }>(
    `WITH next AS (SELECT uid FROM trials WHERE benchmark_run_uid = $1 AND state = 'pending' ORDER BY position LIMIT $2),
          started AS (UPDATE trials t SET state = 'running', attempt_count = 1, started_at = $3 FROM next n WHERE t.uid = n.uid RETURNING t.uid)
     INSERT INTO trial_attempts (trial_uid, attempt_number, state, started_at) SELECT uid, 1, 'pending', $3 FROM started
     RETURNING trial_uid`,
    [benchmarkRunUid, limit, now],
  );
  return rows.map((row) => ({ trialUid: row.trial_uid, attemptNumber: 1 }));
}

/** Adds another attempt to a running trial. The trial has no run until the attempt is dispatched. */
export async function addTrialAttempt(tx: Sql, { trialUid, attemptNumber }: AttemptRef, now: Date): Promise<void> {
  await tx.query(
    "INSERT INTO trial_attempts (trial_uid, attempt_number, state, started_at) VALUES ($1, $2, 'pending', $3)",
    [trialUid, attemptNumber, now],
  );
  await tx.query("UPDATE trials SET attempt_count = $2, run_uid = NULL WHERE uid = $1", [trialUid, attemptNumber]);
}

export const findAttempt = async (
  sql: Sql,
  { trialUid, attemptNumber }: AttemptRef,
): Promise<TrialAttempt | undefined> =>
  (await select(sql, "a.trial_uid = $1 AND a.attempt_number = $2", [trialUid, attemptNumber]))[0];

/** Returns the active attempt of a run. Attempts of replays with the same run are terminal and not returned. */
export const findAttemptOfRun = async (sql: Sql, runUid: string): Promise<TrialAttempt | undefined> =>
  (await select(sql, "a.run_uid = $1 AND a.state IN ('pending', 'running')", [runUid]))[0];

/** Records the run of an attempt. A pending attempt becomes running. */
export async function bindAttempt(
  tx: Sql,
  { trialUid, attemptNumber }: AttemptRef,
  runUid: string,
  isAtCapacity: boolean,
): Promise<void> {
  await tx.query(
    `UPDATE trial_attempts SET run_uid = $3, at_capacity = at_capacity OR $4, state = CASE state WHEN 'pending' THEN 'running' ELSE state END
      WHERE trial_uid = $1 AND attempt_number = $2`,
    [trialUid, attemptNumber, runUid, isAtCapacity],
  );
  await tx.query("UPDATE trials SET run_uid = $3 WHERE uid = $1 AND attempt_count = $2", [
    trialUid,
    attemptNumber,
    runUid,
  ]);
}

export async function endAttempt(
  tx: Sql,
  { trialUid, attemptNumber }: AttemptRef,
  state: TrialEnd["state"],
  errorCode: string | null,
  now: Date,
): Promise<void> {
  await tx.query(
    "UPDATE trial_attempts SET state = $3, error_code = $4, completed_at = $5 WHERE trial_uid = $1 AND attempt_number = $2",
    [trialUid, attemptNumber, state, errorCode, now],
  );
}

/** Ends a trial. The scores that await it become pending if it succeeded, otherwise not scoreable. */
export async function endTrial(
  tx: Sql,
  trialUid: string,
  { state, terminalReason, isInfraFailure }: TrialEnd,
  now: Date,
): Promise<void> {
  await tx.query(
    "UPDATE trials SET state = $2, terminal_reason = $3, is_infra_failure = $4, completed_at = $5 WHERE uid = $1",
    [trialUid, state, terminalReason, isInfraFailure, now],
  );
  await tx.query("UPDATE trial_scores SET state = $2 WHERE trial_uid = $1 AND state = 'awaiting_trial'", [
    trialUid,
    state === "succeeded" ? "pending" : "not_scoreable",
  ]);
}

/** A terminal trial, with the runs of its attempts, oldest first. */
export type EndedTrial = {
  readonly trialUid: string;
  readonly state: TrialState;
  readonly taskUid: string;
  readonly runUid: string | null;
  readonly attemptRunUids: readonly string[];
  /** Scorers with a pending score and no attempt for this trial. */
  readonly pendingScorerUids: readonly string[];
};

export async function findEndedTrial(sql: Sql, trialUid: string): Promise<EndedTrial | undefined> {
  const { rows } = await sql.query<{
    uid: string;
    state: TrialState;
    task_uid: string;
    run_uid: string | null;
    runs: string[];
    scorers: string[];
  }>(
    `SELECT t.uid, t.state, t.task_uid, t.run_uid,
            ARRAY(SELECT a.run_uid::text FROM trial_attempts a WHERE a.trial_uid = t.uid AND a.run_uid IS NOT NULL ORDER BY a.attempt_number) AS runs,
            ARRAY(SELECT s.scorer_uid::text FROM trial_scores s
                   WHERE s.trial_uid = t.uid AND s.state = 'pending'
                     AND NOT EXISTS (SELECT 1 FROM attempts j WHERE j.trial_uid = t.uid AND j.scorer_uid = s.scorer_uid)
                   ORDER BY s.scorer_uid) AS scorers
       FROM trials t WHERE t.uid = $1 AND t.state NOT IN ('pending', 'running')`,
    [trialUid],
  );
  return rows.map((row) => ({
    trialUid: row.uid,
    state: row.state,
    taskUid: row.task_uid,
    runUid: row.run_uid,
    attemptRunUids: row.runs,
    pendingScorerUids: row.scorers,
  }))[0];
}

/** Stores the final figures of a trial. Absent figures retain the stored ones. */
export async function storeTrialFigures(
  tx: Sql,
  trialUid: string,
  figures: TrialFigures | undefined,
  now: Date,
): Promise<void> {
  const { costMicros, totalTokens, wallTimeMs, usage } = figures ?? {};
  await tx.query(
    `UPDATE trials SET measured_at = $2, cost_micros = coalesce($3, cost_micros), total_tokens = coalesce($4, total_tokens),
            wall_time_ms = coalesce($5, wall_time_ms), usage = coalesce($6::jsonb, usage)
      WHERE uid = $1`,
    [trialUid, now, costMicros ?? null, totalTokens ?? null, wallTimeMs ?? null, usage ? JSON.stringify(usage) : null],
  );
}

/** Ends pending scores that no judge will determine. */
export async function endScores(tx: Sql, trialUid: string, scorerUids: readonly string[]): Promise<void> {
  await tx.query(
    "UPDATE trial_scores SET state = 'finished_unscored' WHERE trial_uid = $1 AND scorer_uid = ANY ($2::uuid[]) AND state = 'pending'",
    [trialUid, scorerUids],
  );
}

/**
 * Copies the ends, attempts and figures of the replayed trials to the pending trials of a replay with the same task,
 * configuration and repetition. Trials without a counterpart fail for infrastructure reasons. Returns the uids of all
 * changed trials.
 */
export async function copyReplayedTrials(
  tx: Sql,
  benchmarkRunUid: string,
  replayedRunUid: string,
  now: Date,
): Promise<string[]> {
  const { rows } = await tx.query<{ uid: string }>(
    `UPDATE trials t SET state = coalesce(o.state, 'failed'), terminal_reason = CASE WHEN o.uid IS NULL THEN 'failure' ELSE o.terminal_reason END,
            is_infra_failure = coalesce(o.is_infra_failure, true), run_uid = o.run_uid, attempt_count = coalesce(o.attempt_count, 0),
            cost_micros = coalesce(o.cost_micros, 0), total_tokens = coalesce(o.total_tokens, 0), wall_time_ms = coalesce(o.wall_time_ms, 0),
            usage = o.usage, started_at = coalesce(o.started_at, $3), completed_at = coalesce(o.completed_at, $3)
       FROM trials n LEFT JOIN trials o
         ON o.benchmark_run_uid = $2 AND o.task_uid = n.task_uid AND o.configuration_uid = n.configuration_uid AND o.rep_index = n.rep_index
        AND o.state NOT IN ('pending', 'running')
      WHERE n.benchmark_run_uid = $1 AND t.uid = n.uid AND t.state = 'pending'
     RETURNING t.uid`,
    [benchmarkRunUid, replayedRunUid, now],
  );
  await tx.query(
    `INSERT INTO trial_attempts (trial_uid, attempt_number, run_uid, state, error_code, started_at, completed_at)
     SELECT n.uid, a.attempt_number, a.run_uid, a.state, a.error_code, a.started_at, a.completed_at
       FROM trials n JOIN trials o
         ON o.benchmark_run_uid = $2 AND o.task_uid = n.task_uid AND o.configuration_uid = n.configuration_uid AND o.rep_index = n.rep_index
       JOIN trial_attempts a ON a.trial_uid = o.uid
      WHERE n.benchmark_run_uid = $1 AND a.state NOT IN ('pending', 'running')`,
    [benchmarkRunUid, replayedRunUid],
  );
  await tx.query(
    `UPDATE trial_scores s SET state = CASE t.state WHEN 'succeeded' THEN 'pending' ELSE 'not_scoreable' END
       FROM trials t WHERE t.benchmark_run_uid = $1 AND s.trial_uid = t.uid AND s.state = 'awaiting_trial'`,
    [benchmarkRunUid],
  );
  return rows.map(({ uid }) => uid);
}

async function select(sql: Sql, where: string, params: readonly unknown[]): Promise<TrialAttempt[]> {
  const { rows } = await sql.query<AttemptRow>(
    `SELECT t.benchmark_run_uid, t.uid, t.state AS trial_state, t.task_uid, t.configuration_uid, a.attempt_number, a.state, a.run_uid
       FROM trial_attempts a JOIN trials t ON t.uid = a.trial_uid WHERE ${where}`,
    params,
  );
  return rows.map((row) => ({
    benchmarkRunUid: row.benchmark_run_uid,
    trialUid: row.uid,
    trialState: row.trial_state,
    taskUid: row.task_uid,
    configurationUid: row.configuration_uid,
    attemptNumber: row.attempt_number,
    state: row.state,
    runUid: row.run_uid,
  }));
}

type AttemptRow = {
  benchmark_run_uid: string;
  uid: string;
  trial_state: TrialState;
  task_uid: string;
  configuration_uid: string;
  attempt_number: number;
  state: TrialState;
  run_uid: string | null;
};
