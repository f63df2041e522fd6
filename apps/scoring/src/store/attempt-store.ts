import type { Database, Sql } from "@millwright/database";
import { appendEvents } from "@millwright/events";
import { as } from "@millwright/ids";
import { attemptFailed, scoreRecorded } from "../events/attempt-events.ts";
import type { Attempt, AttemptUid, Verdict } from "../domain/attempt.ts";
import type { ScorerUid } from "../domain/scorer.ts";
import { ATTEMPT_COLUMNS, toAttempt, type AttemptRow, type JudgedAttempt } from "./attempt-rows.ts";

export type NewAttempt = Omit<Attempt, "state" | "judgeRunUid">;
export type Pair = { readonly scorerUid: ScorerUid; readonly runUid: string };
/** Usage of the judge run of an attempt. */
export type JudgeUsage = { readonly costMicros: number; readonly timeMs: number; readonly usage: unknown };

/** Reads attempts by uid and by judge run. */
export function attemptStore(database: Database) {
  return {
    find: async (uid: string): Promise<JudgedAttempt | undefined> =>
      (await select(database.sql, "a.uid = $1", [uid]))[0],
    findByJudgeRun: async (runUid: string): Promise<JudgedAttempt | undefined> =>
      (await select(database.sql, "a.judge_run_uid = $1", [runUid]))[0],
  };
}

export type AttemptStore = ReturnType<typeof attemptStore>;

/** Locks an attempt until the transaction ends. Returns undefined if it was deleted. */
export const lockAttempt = async (tx: Sql, uid: string): Promise<JudgedAttempt | undefined> =>
  (await select(tx, "a.uid = $1", [uid], "FOR UPDATE"))[0];

/**
 * Serialises changes of the attempts of pairs. Must be called before other data of the pairs is read, so that later
 * statements see what the previous lock holder committed.
 */
export async function lockPairs(tx: Sql, pairs: readonly Pair[]): Promise<void> {
  await tx.query(
    `SELECT pg_advisory_xact_lock(k.key)
       FROM (SELECT DISTINCT hashtextextended(p ->> 0, 0) AS key FROM jsonb_array_elements($1::jsonb) AS given (p) ORDER BY key) k`,
    [JSON.stringify(pairs.map(({ scorerUid, runUid }) => [`attempt ${scorerUid} ${runUid}`]))],
  );
}

/**
 * Inserts attempts of pairs that have none in flight and whose scorers exist. Returns the uids of the inserted
 * attempts. A new attempt becomes current unless its pair has a score, which remains current until a newer score
 * replaces it. Pairs must be locked.
 */
export async function insertAttempts(tx: Sql, attempts: readonly NewAttempt[]): Promise<Set<AttemptUid>> {
  const rows = JSON.stringify(attempts.map(toRow));
  await tx.query(
    `UPDATE attempts a SET is_current = false FROM ${ROWS}
      WHERE a.scorer_uid = r.scorer_uid AND a.run_uid = r.run_uid AND a.is_current AND a.state = 'failed'`,
    [rows],
  );
  const { rows: inserted } = await tx.query<{ uid: AttemptUid }>(
    `INSERT INTO attempts (uid, scorer_uid, run_uid, factory_uid, team_uid, agent_uid, conversation_uid, title, trial_uid, trigger_source,
                           requester_type, requester_uid, config, run_version, attempted_at, is_current)
     SELECT r.uid, r.scorer_uid, r.run_uid, r.factory_uid, r.team_uid, r.agent_uid, r.conversation_uid, r.title, r.trial_uid, r.trigger_source,
            r.requester_type, r.requester_uid, r.config, r.run_version, r.attempted_at,
            NOT EXISTS (SELECT 1 FROM attempts a WHERE a.scorer_uid = r.scorer_uid AND a.run_uid = r.run_uid AND a.is_current)
       FROM ${ROWS} JOIN scorers s ON s.uid = r.scorer_uid
        FOR KEY SHARE OF s
     ON CONFLICT (scorer_uid, run_uid) WHERE state IN ('pending', 'judging') DO NOTHING
     RETURNING uid`,
    [rows],
  );
  return new Set(inserted.map(({ uid }) => uid));
}

/** Returns the attempts of pairs that are in flight. */
export async function findInFlight(tx: Sql, pairs: readonly Pair[]): Promise<(Pair & { readonly uid: AttemptUid })[]> {
  const { rows } = await tx.query<{ uid: string; scorer_uid: string; run_uid: string }>(
    `SELECT a.uid, a.scorer_uid, a.run_uid FROM attempts a
       JOIN jsonb_to_recordset($1::jsonb) AS p (scorer_uid uuid, run_uid uuid) ON a.scorer_uid = p.scorer_uid AND a.run_uid = p.run_uid
      WHERE a.state IN ('pending', 'judging')`,
    [JSON.stringify(pairs.map(({ scorerUid, runUid }) => ({ scorer_uid: scorerUid, run_uid: runUid })))],
  );
  return rows.map((row) => ({
    uid: as<AttemptUid>(row.uid),
    scorerUid: as<ScorerUid>(row.scorer_uid),
    runUid: row.run_uid,
  }));
}

/** Returns the newest versions of runs that scorers have attempted, by `attemptedKey`. */
export async function attemptedVersions(tx: Sql, runUids: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await tx.query<{ scorer_uid: string; run_uid: string; version: number }>(
    "SELECT scorer_uid, run_uid, max(run_version) AS version FROM attempts WHERE run_uid = ANY ($1::uuid[]) GROUP BY scorer_uid, run_uid",
    [runUids],
  );
  return new Map(rows.map((row) => [attemptedKey(row.scorer_uid, row.run_uid), row.version]));
}

export const attemptedKey = (scorerUid: string, runUid: string): string => `${scorerUid} ${runUid}`;

/**
 * Returns the uids of attempts whose work item is dead-lettered (state `dead_lettered`). `kinds` has the kind of work
 * for each state of an attempt.
 */
export async function findAbandoned(
  sql: Sql,
  kinds: { readonly pending: string; readonly judging: string },
): Promise<string[]> {
  const { rows } = await sql.query<{ uid: string }>(
    `SELECT a.uid FROM stream.work_items w JOIN attempts a ON a.uid = w.key::uuid AND a.state = 'pending' WHERE w.kind = $1 AND w.state = 'dead_lettered'
     UNION
     SELECT a.uid FROM stream.work_items w JOIN attempts a ON a.judge_run_uid = (w.payload ->> 'runUid')::uuid AND a.state = 'judging' WHERE w.kind = $2 AND w.state = 'dead_lettered'`,
    [kinds.pending, kinds.judging],
  );
  return rows.map(({ uid }) => uid);
}

/** Records the judge run of a pending attempt. Returns false if the attempt is no longer pending or was deleted. */
export async function markJudging(tx: Sql, uid: string, judgeRunUid: string): Promise<boolean> {
  const { rows } = await tx.query<{ trial_uid: string | null; scorer_uid: string }>(
    "UPDATE attempts SET state = 'judging', judge_run_uid = $2 WHERE uid = $1 AND state = 'pending' RETURNING trial_uid, scorer_uid",
    [uid, judgeRunUid],
  );
  const [row] = rows;
  if (row?.trial_uid) {
    await tx.query(
      "UPDATE trial_scores SET state = 'judging', judge_run_uid = $3 WHERE trial_uid = $1 AND scorer_uid = $2",
      [row.trial_uid, row.scorer_uid, judgeRunUid],
    );
  }
  return row !== undefined;
}

/**
 * Ends an attempt that is in flight, with its trial's score and its event. A score replaces the earlier attempts of the
 * pair; a failure does not replace them. Returns false if the attempt had ended before or was deleted.
 */
export async function settleAttempt(tx: Sql, attempt: Attempt, verdict: Verdict, now: Date): Promise<boolean> {
  await lockPairs(tx, [attempt]);
  const isSettled =
    verdict.kind === "scored"
      ? await settleScored(tx, attempt, verdict, now)
      : await settleFailed(tx, attempt, verdict);
  if (!isSettled) return false;
  if (attempt.trialUid !== null) await settleTrialScore(tx, attempt, verdict);
  await appendEvents(tx, [
    verdict.kind === "scored" ? scoreRecorded(attempt, verdict.label) : attemptFailed(attempt, verdict.code),
  ]);
  return true;
}

/** Stores the usage of a judge run, regardless of its outcome. Returns false if the attempt was deleted. */
export async function storeJudgeUsage(
  tx: Sql,
  uid: string,
  { costMicros, timeMs, usage }: JudgeUsage,
): Promise<boolean> {
  const { rows } = await tx.query<{ trial_uid: string | null; scorer_uid: string }>(
    "UPDATE attempts SET cost_micros = $2, judge_time_ms = $3, judge_usage = $4::jsonb WHERE uid = $1 RETURNING trial_uid, scorer_uid",
    [uid, costMicros, timeMs, usage === undefined ? null : JSON.stringify(usage)],
  );
  const [row] = rows;
  if (row?.trial_uid) {
    await tx.query("UPDATE trial_scores SET cost_micros = $3 WHERE trial_uid = $1 AND scorer_uid = $2", [
      row.trial_uid,
      row.scorer_uid,
      costMicros,
    ]);
  }
  return row !== undefined;
}

async function settleScored(
  tx: Sql,
  attempt: Attempt,
  { label, reason }: Verdict & { kind: "scored" },
  now: Date,
): Promise<boolean> {
  const { rowCount } = await tx.query(
    `UPDATE attempts SET state = 'scored', classification = $2, score = $3, reason = $4, reason_status = $5, scored_at = $6
      WHERE uid = $1 AND state IN ('pending', 'judging')`,
    [attempt.uid, label.value, label.score, reason ?? null, reason === undefined ? "absent" : "available", now],
  );
  if (rowCount === 0) return false;
  await tx.query("DELETE FROM attempts WHERE scorer_uid = $1 AND run_uid = $2 AND uid <> $3", [
    attempt.scorerUid,
    attempt.runUid,
    attempt.uid,
  ]);
  await tx.query("UPDATE attempts SET is_current = true WHERE uid = $1 AND NOT is_current", [attempt.uid]);
  return true;
}

async function settleFailed(
  tx: Sql,
  { uid }: Attempt,
  { code, message }: Verdict & { kind: "failed" },
): Promise<boolean> {
  const { rowCount } = await tx.query(
    "UPDATE attempts SET state = 'failed', failure_code = $2, failure_message = $3 WHERE uid = $1 AND state IN ('pending', 'judging')",
    [uid, code, message],
  );
  return rowCount > 0;
}

async function settleTrialScore(tx: Sql, { trialUid, scorerUid }: Attempt, verdict: Verdict): Promise<void> {
  const label = verdict.kind === "scored" ? verdict.label : undefined;
  await tx.query(
    "UPDATE trial_scores SET state = $3, classification = $4, score = $5 WHERE trial_uid = $1 AND scorer_uid = $2",
    [trialUid, scorerUid, label ? "scored" : "finished_unscored", label?.value ?? null, label?.score ?? null],
  );
}

async function select(
  sql: Sql,
  where: string,
  params: readonly unknown[],
  lock: "" | "FOR UPDATE" = "",
): Promise<JudgedAttempt[]> {
  const { rows } = await sql.query<AttemptRow>(
    `SELECT ${ATTEMPT_COLUMNS} FROM attempts a WHERE ${where} ${lock}`,
    params,
  );
  return rows.map(toAttempt);
}

const ROWS = `jsonb_to_recordset($1::jsonb) AS r (
  uid uuid, scorer_uid uuid, run_uid uuid, factory_uid uuid, team_uid uuid, agent_uid uuid, conversation_uid uuid, title text, trial_uid uuid,
  trigger_source text, requester_type text, requester_uid text, config jsonb, run_version bigint, attempted_at timestamptz)`;

const toRow = (attempt: NewAttempt) => ({
  uid: attempt.uid,
  scorer_uid: attempt.scorerUid,
  run_uid: attempt.runUid,
  factory_uid: attempt.factoryUid,
  team_uid: attempt.teamUid,
  agent_uid: attempt.agentUid,
  conversation_uid: attempt.conversationUid,
  title: attempt.title,
  trial_uid: attempt.trialUid,
  trigger_source: attempt.triggerSource,
  requester_type: attempt.requester.type,
  requester_uid: attempt.requester.uid,
  config: attempt.config,
  run_version: attempt.runVersion,
  attempted_at: attempt.attemptedAt,
});
