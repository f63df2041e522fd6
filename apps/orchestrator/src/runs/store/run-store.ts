import type { Caller } from "@millwright/caller";
import { ownersWith } from "@millwright/caller";
import { Batcher, type Database, type Sql } from "@millwright/database";
import { notFound } from "@millwright/errors";
import { isUuid, type RunUid } from "@millwright/ids";
import type { Run } from "../domain/run.ts";
import { canSee } from "../domain/run-visibility.ts";
import { RUN_COLUMNS, toRun, type RunRow } from "./run-fields.ts";

/**
 * Returns the condition that a caller may see a run (`r`), with parameters from `$first` on; `visibleTo` returns their
 * values.
 */
export const visibleRuns = (first: number): string =>
  `(((r.owner_type = 'team' AND r.owner_uid = ANY($${first}::uuid[])) OR (r.owner_type = 'user' AND r.owner_uid = $${first + 1}::uuid))
    AND ($${first + 2}::uuid IS NULL OR r.root_run_uid = $${first + 2}::uuid OR r.factory_uid = $${first + 3}::uuid))`;

/**
 * Returns the teams and the user whose runs the caller may see; for a run token, also the tree and the factory to which
 * it is bound.
 */
export function visibleTo(
  caller: Caller,
): [teams: string[], user: string | null, rootRunUid: string | null, factoryUid: string | null] {
  const owners = ownersWith(caller, "run.view");
  const person = owners.find(({ type }) => type === "user");
  return [
    owners.filter(({ type }) => type === "team").map(({ uid }) => uid),
    person?.uid ?? null,
    caller.run?.rootRunUid ?? null,
    caller.run?.factoryUid ?? null,
  ];
}

const RUNS_BY_UID = `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.uid = ANY($1::uuid[])`;

/**
 * Returns functions that read single runs for callers who may see them. Concurrent reads are batched into one query.
 */
export function visibleRunReader({ lookups }: Pick<Database, "lookups">) {
  const runs = new Batcher(async (uids: readonly string[]) => {
    const { rows } = await lookups.query<RunRow>(RUNS_BY_UID, [uids]);
    const found = new Map<string, RunRow>(rows.map((row) => [row.uid, row]));
    return uids.map((uid) => found.get(uid)).map((row) => row && toRun(row));
  });
  /** Returns undefined if the run is absent or not visible. A malformed uid finds nothing. */
  const findVisibleRun = async (caller: Caller, uid: string): Promise<Run | undefined> => {
    const run = isUuid(uid) ? await runs.add(uid.toLowerCase()) : undefined;
    return run && canSee(caller, run) ? run : undefined;
  };
  /** Errors: run_not_found (absent or not visible). */
  const getVisibleRun = async (caller: Caller, uid: string): Promise<Run> => {
    const run = await findVisibleRun(caller, uid);
    if (!run) throw notFound("run");
    return run;
  };
  return { findVisibleRun, getVisibleRun };
}

/** Returns a run by uid, without an access check. A malformed uid finds nothing. */
export async function findRun(sql: Sql, uid: string): Promise<Run | undefined> {
  if (!isUuid(uid)) return undefined;
  const { rows } = await sql.query<RunRow>(`SELECT ${RUN_COLUMNS} FROM runs r WHERE r.uid = $1`, [uid]);
  return rows[0] && toRun(rows[0]);
}

/**
 * The runs of the conversation `$1`, for a FROM clause. OFFSET 0 makes PostgreSQL apply this filter on its own.
 * Otherwise it may scan all runs of an owner, as long as its statistics underestimate their number.
 */
export const RUNS_OF_CONVERSATION =
  "(SELECT uid, owner_type, owner_uid, created_at FROM runs WHERE conversation_uid = $1 OFFSET 0)";

/** Returns the newest run of a conversation that the caller may see. */
export async function findNewestOfConversation(
  sql: Sql,
  caller: Caller,
  conversationUid: string,
): Promise<Run | undefined> {
  if (!isUuid(conversationUid)) return undefined;
  const text = `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.conversation_uid = $1 AND ${visibleRuns(2)}
                 ORDER BY r.created_at DESC, r.uid DESC LIMIT 1`;
  const { rows } = await sql.query<RunRow>(text, [conversationUid, ...visibleTo(caller)]);
  return rows[0] && toRun(rows[0]);
}

/** Returns the newest `limit` runs before this one in its conversation that have the same owner, oldest first. */
export async function earlierRuns(sql: Sql, runUid: string, limit: number): Promise<string[]> {
  const { rows } = await sql.query<{ uid: string }>(
    `SELECT e.uid FROM runs r JOIN runs e ON e.conversation_uid = r.conversation_uid AND e.owner_type = r.owner_type AND e.owner_uid = r.owner_uid
        AND (e.created_at, e.uid) < (r.created_at, r.uid)
      WHERE r.uid = $1 ORDER BY e.created_at DESC, e.uid DESC LIMIT $2`,
    [runUid, limit],
  );
  return rows.map(({ uid }) => uid).toReversed();
}

/** Returns the number of runs of a factory that are not terminal. */
export async function countLiveRuns(sql: Sql, factoryUid: string): Promise<number> {
  const text = `SELECT count(*) AS live FROM runs WHERE factory_uid = $1 AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')`;
  const { rows } = await sql.query<{ live: number }>(text, [factoryUid]);
  return rows[0]?.live ?? 0;
}

/** Returns the runs of an agent that are not terminal, oldest first. */
export async function liveRunsOfAgent(sql: Sql, agentUid: string): Promise<RunUid[]> {
  const text = `SELECT uid FROM runs WHERE agent_uid = $1::uuid AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS') ORDER BY created_at, uid`;
  return (await sql.query<{ uid: RunUid }>(text, [agentUid])).rows.map(({ uid }) => uid);
}

/** Returns titles by uid; uids without a run are left out. */
export async function findTitles(sql: Sql, uids: readonly string[]): Promise<Record<string, string>> {
  const { rows } = await sql.query<{ uid: string; title: string }>(
    "SELECT uid, title FROM runs WHERE uid = ANY($1::uuid[])",
    [uids.filter(isUuid)],
  );
  return Object.fromEntries(rows.map(({ uid, title }) => [uid, title]));
}
