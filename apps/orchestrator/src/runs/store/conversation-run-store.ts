import type { Caller } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import { isUuid, type RunUid } from "@millwright/ids";
import type { Run } from "../domain/run.ts";
import { LISTED_RUN_COLUMNS, toRun, type RunRow } from "./run-fields.ts";
import { visibleRuns, visibleTo } from "./run-store.ts";

/** Returns the run that first reported a reference with this canonical URL, among those the caller may see. */
export async function findByReference(sql: Sql, caller: Caller, url: string): Promise<RunUid | undefined> {
  const { rows } = await sql.query<{ uid: RunUid }>(
    `SELECT r.uid FROM artifacts a JOIN runs r ON r.uid = a.run_uid
      WHERE a.artifact_type = 'EXTERNAL_REFERENCE' AND a.data->>'url' = $1 AND a.committed_at IS NOT NULL AND ${visibleRuns(2)}
      ORDER BY a.created_at, a.uid LIMIT 1`,
    [url, ...visibleTo(caller)],
  );
  return rows[0]?.uid;
}

/**
 * Returns the SQL expression that normalizes a ticket's URL: lower case, without query, fragment and trailing slashes.
 * The index `runs_by_ticket` has the same expression.
 */
const ticketAt = (url: string): string => `lower(regexp_replace(btrim(${url}), '/*([?#].*)?$', ''))`;

/**
 * Returns the conversations of a team's top-level runs that concern a canonical URL, newest first, at most 100. Either
 * a run of their trees reported the URL, or it is their ticket's URL after normalization.
 */
export async function conversationsByUrl(sql: Sql, teamUid: string, url: string): Promise<string[]> {
  const { rows } = await sql.query<{ uid: string }>(
    `SELECT conversation_uid AS uid FROM (
       SELECT o.conversation_uid, o.created_at FROM artifacts a JOIN runs r ON r.uid = a.run_uid JOIN runs o ON o.uid = r.root_run_uid
        WHERE a.artifact_type = 'EXTERNAL_REFERENCE' AND a.data->>'url' = $2 AND a.committed_at IS NOT NULL AND o.owner_type = 'team' AND o.owner_uid = $1
       UNION ALL
       SELECT o.conversation_uid, o.created_at FROM artifacts a JOIN runs r ON r.uid = a.run_uid JOIN runs o ON o.uid = r.root_run_uid
        WHERE a.artifact_type = 'PULL_REQUEST' AND a.data->>'url' = $2 AND a.committed_at IS NOT NULL AND o.owner_type = 'team' AND o.owner_uid = $1
       UNION ALL
       SELECT conversation_uid, created_at FROM runs
        WHERE ${ticketAt("metadata->>'ticket_url'")} = ${ticketAt("$2::text")} AND metadata->>'ticket_url' IS NOT NULL AND parent_run_uid IS NULL AND owner_type = 'team' AND owner_uid = $1) c
      GROUP BY 1 ORDER BY max(created_at) DESC, 1 LIMIT 100`,
    [teamUid, url],
  );
  return rows.map(({ uid }) => uid);
}

/** Returns the visible children of these runs, oldest first. */
export async function listChildren(
  sql: Sql,
  caller: Caller,
  parentUids: readonly string[],
  limit: number,
): Promise<Run[]> {
  const text = `SELECT ${LISTED_RUN_COLUMNS} FROM runs r WHERE r.parent_run_uid = ANY($1::uuid[]) AND ${visibleRuns(3)} ORDER BY r.created_at, r.uid LIMIT $2`;
  const { rows } = await sql.query<RunRow>(text, [parentUids, limit, ...visibleTo(caller)]);
  return rows.map(toRun);
}

/** Returns the visible runs that serve a conversation, oldest first. A malformed uid finds none. */
export async function listOfConversation(sql: Sql, caller: Caller, conversationUid: string): Promise<Run[]> {
  if (!isUuid(conversationUid)) return [];
  const text = `SELECT ${LISTED_RUN_COLUMNS} FROM runs r WHERE r.conversation_uid = $1 AND ${visibleRuns(2)} ORDER BY r.created_at, r.uid`;
  const { rows } = await sql.query<RunRow>(text, [conversationUid, ...visibleTo(caller)]);
  return rows.map(toRun);
}

const ofTeam = (param: number): string =>
  `($${param}::uuid IS NULL OR (owner_type = 'team' AND owner_uid = $${param}::uuid))`;

/**
 * Returns the current run of each conversation, regardless of its owner: its newest top-level run; with `teamUid`, the
 * newest of that team. For a conversation that only child runs serve, returns the newest of these. Malformed uids find
 * nothing.
 */
export async function currentRunsOfConversations(
  sql: Sql,
  conversationUids: readonly string[],
  teamUid?: string,
): Promise<Run[]> {
  const text = `SELECT ${LISTED_RUN_COLUMNS} FROM unnest($1::uuid[]) AS c (uid)
    CROSS JOIN LATERAL (
      SELECT * FROM runs WHERE conversation_uid = c.uid AND ${ofTeam(2)}
       ORDER BY parent_run_uid IS NULL DESC, created_at DESC, uid DESC LIMIT 1) r`;
  const { rows } = await sql.query<RunRow>(text, [conversationUids.filter(isUuid), teamUid ?? null]);
  return rows.map(toRun);
}

/** Returns the visible runs of these conversations; with `teamUid`, only runs of that team. */
export async function listOfConversations(
  sql: Sql,
  caller: Caller,
  conversationUids: readonly string[],
  teamUid?: string,
): Promise<{ uid: RunUid; conversationUid: string }[]> {
  const text = `SELECT r.uid, r.conversation_uid AS "conversationUid" FROM runs r WHERE r.conversation_uid = ANY($1::uuid[]) AND ${ofTeam(2)} AND ${visibleRuns(3)}`;
  return (
    await sql.query<{ uid: RunUid; conversationUid: string }>(text, [
      conversationUids.filter(isUuid),
      teamUid ?? null,
      ...visibleTo(caller),
    ])
  ).rows;
}

/** Returns these runs and all their descendants, as far as they are visible. */
export async function listTreeUids(sql: Sql, caller: Caller, uids: readonly string[]): Promise<RunUid[]> {
  const { rows } = await sql.query<{ uid: RunUid }>(
    `WITH RECURSIVE tree AS (
       SELECT c.uid, c.owner_type, c.owner_uid, c.root_run_uid, c.factory_uid FROM runs c WHERE c.uid = ANY($1::uuid[])
       UNION SELECT c.uid, c.owner_type, c.owner_uid, c.root_run_uid, c.factory_uid FROM tree t JOIN runs c ON c.parent_run_uid = t.uid)
     SELECT r.uid FROM tree r WHERE ${visibleRuns(2)}`,
    [uids, ...visibleTo(caller)],
  );
  return rows.map(({ uid }) => uid);
}
