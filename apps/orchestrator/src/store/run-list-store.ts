import type { Caller } from "@millwright/caller";
import { isCancelled, type Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import { isUuid, type RunUid } from "@millwright/ids";
import { EMPTY_ENVIRONMENT, type RunListQuery, type RunPosition, type RunSearch, type RunSort, type TaskStatus } from "../domain/run-list.ts";
import type { Owner, Run, RunState } from "../domain/run.ts";
import { RUN_COLUMNS, toRun, visibleRuns, visibleTo, type RunRow } from "./run-store.ts";

export type ListedRun = { readonly run: Run; readonly position: RunPosition };

/** The sort key of a run, as an expression, with the type in which a cursor gives it back. `C` order: the same on every server. */
const KEYS: Readonly<Record<RunSort, { readonly expression: string; readonly type: string }>> = {
  updated_at: { expression: "r.updated_at", type: "timestamptz" },
  created_at: { expression: "r.created_at", type: "timestamptz" },
  title: { expression: 'lower(r.title) COLLATE "C"', type: "text" },
  agent: { expression: 'r.skill_spec COLLATE "C"', type: "text" },
};

/**
 * A page of the runs that the caller may see, at most `limit`, after a position. Ties are broken by uid.
 *
 * Errors: list_too_slow (unavailable, not retryable), when the statement was cancelled: its filters together hold of too few of too many runs.
 */
export async function listRuns(sql: Sql, caller: Caller, query: RunListQuery, after: RunPosition | undefined, limit: number): Promise<ListedRun[]> {
  const params: unknown[] = [];
  const bind = (value: unknown, type: string): string => `$${params.push(value)}::${type}`;
  const key = KEYS[query.sortBy];
  const direction = query.isDescending ? "DESC" : "ASC";
  const owners = ownersInView(caller, query.teamUid);
  const given = `${bind(owners.map(({ type }) => type), "text[]")}, ${bind(owners.map(({ uid }) => uid), "uuid[]")}`;
  const where = ["r.owner_type = o.type AND r.owner_uid = o.uid", ...filters(query, bind), ...(after ? continued(query, after, bind) : [])];
  const ways = halves(query, bind).map((half) => [...where, ...half].join("\n AND "));
  // Runs without a skill are last in both directions (fields-runs §6.2); the other keys are never null.
  const order = `${query.sortBy === "agent" ? "(r.skill_spec IS NULL), " : ""}${key.expression} ${direction}, r.uid ${direction}`;
  const page = `ORDER BY ${order} LIMIT ${bind(limit, "integer")}`;
  const pages = ways.map((way) => `SELECT * FROM runs r WHERE ${way} ${page}`);
  // A page per owner, each in the order of an index, then the page of them all: nothing is read that is not shown.
  const { rows } = await inTime(sql.query<RunRow & { sort_key: Date | string | null; as_of: Date }>(
    `SELECT ${RUN_COLUMNS}, ${key.expression} AS sort_key, clock_timestamp() AS as_of
       FROM unnest(${given}) AS o (type, uid)
       CROSS JOIN LATERAL (${pages.length === 1 ? pages[0] : pages.map((one) => `(${one})`).join(" UNION ALL ")}) r ${page}`,
    params,
  ));
  // Stored times are rounded to milliseconds, the clock is not: one more covers every row that this page could see.
  const asOf = after?.asOf ?? new Date((rows[0]?.as_of.getTime() ?? 0) + 1);
  return rows.map((row) => ({ run: toRun(row), position: { asOf, key: keyText(row.sort_key), uid: row.uid } }));
}

async function inTime<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!isCancelled(error)) throw error;
    throw new DomainError({
      kind: "unavailable", reason: "list_too_slow", retryable: false, cause: error,
      message: "These runs were not found within two seconds; ask for less, such as one filter fewer, or runs created after some time.",
    });
  }
}

type Bind = (value: unknown, type: string) => string;

/** Whose runs the caller may see, or those of one team only. The principal of a service is no uid: it owns nothing. */
export function ownersInView(caller: Caller, teamUid?: string): Owner[] {
  const [teams, user] = visibleTo(caller);
  const chosen = teams.filter((team) => teamUid === undefined || team === teamUid).map((uid): Owner => ({ type: "team", uid }));
  return [...chosen, ...(teamUid === undefined && isUuid(user) ? [{ type: "user", uid: user } as const] : [])];
}

function filters(query: RunListQuery, bind: Bind): string[] {
  const { states, createdAfter, createdBefore, updatedAfter, factoryUids, ancestorRunUid, sources, environmentUid, artifactType, search, taskStatuses, metadata } = query;
  const equal = (column: string, value: string | undefined): string[] => (value === undefined ? [] : [`${column} = ${bind(value, "text")}`]);
  return [
    ...(states.length > 0 ? [`r.state = ANY(${bind(states, "text[]")})`] : []),
    ...(createdAfter ? [`r.created_at > ${bind(createdAfter, "timestamptz")}`] : []),
    ...(createdBefore ? [`r.created_at < ${bind(createdBefore, "timestamptz")}`] : []),
    ...(updatedAfter ? [`r.updated_at > ${bind(updatedAfter, "timestamptz")}`] : []),
    ...(factoryUids ? [`r.factory_uid = ANY(${bind(factoryUids, "uuid[]")})`] : []),
    ...(ancestorRunUid === undefined ? [] : [`r.uid IN (${descendants(bind(ancestorRunUid, "uuid"))})`]),
    ...(sources ? [`r.source = ANY(${bind(sources, "text[]")})`] : []),
    ...equal("r.config_name", query.name),
    ...equal("r.model_id", query.modelId),
    ...equal("r.creator_uid", query.creatorUid),
    ...equal("r.executor_uid", query.executorUid),
    ...equal("r.execution_location", query.executionLocation),
    ...(taskStatuses ? ofTasks(taskStatuses, bind) : []),
    ...(metadata ? [`r.metadata @> ${bind(JSON.stringify(metadata), "jsonb")}`] : []),
    // In the terms of the index of its sort: within one skill that is an order by uid.
    ...(query.skillSpec === undefined ? [] : [`(r.skill_spec IS NULL) IS FALSE AND r.skill_spec COLLATE "C" = ${bind(query.skillSpec, "text")}`]),
    ...equal("r.schedule->>'schedule_id'", query.scheduleUid),
    ...(environmentUid === EMPTY_ENVIRONMENT ? ["r.environment_uid IS NULL"] : equal("r.environment_uid", environmentUid)),
    ...(artifactType === undefined ? [] : [`EXISTS (SELECT 1 FROM artifacts a WHERE a.run_uid = r.uid AND a.committed_at IS NOT NULL AND a.artifact_type = ${bind(artifactType, "text")})`]),
    ...(search ? found(search, bind) : []),
  ];
}

/** A run that changed later than this after it was made is found by an index of its own. */
const LATE = "interval '1 day'";

/**
 * Times of creation and of change are close to each other, but for few runs. Where one is bounded from the side at which a walk in the order of the other
 * begins, two walks are made: of the many, from near that bound on, and of the few. Otherwise a walk would pass all that lies between.
 */
function halves({ sortBy, isDescending, createdAfter, createdBefore, updatedAfter }: RunListQuery, bind: Bind): string[][] {
  const late = `r.updated_at - r.created_at > ${LATE}`;
  const onTime = `r.updated_at - r.created_at <= ${LATE}`;
  // What was made after a time has changed after it.
  const implied = createdAfter && sortBy === "updated_at" ? [`r.updated_at > ${bind(createdAfter, "timestamptz")}`] : [];
  if (sortBy === "updated_at" && isDescending && createdBefore) return [[...implied, onTime, `r.updated_at < ${bind(createdBefore, "timestamptz")} + ${LATE}`], [...implied, late]];
  if (sortBy === "created_at" && !isDescending && updatedAfter) return [[onTime, `r.created_at > ${bind(updatedAfter, "timestamptz")} - ${LATE}`], [late]];
  return [implied];
}

const STATES_OF_TASK: Readonly<Record<Exclude<TaskStatus, "running">, readonly RunState[]>> = {
  complete: ["SUCCEEDED"],
  failed: ["FAILED", "ERROR"],
  blocked: ["BLOCKED"],
  cancelled: ["CANCELLED"],
};

/** Top-level runs by their own end; a task is running while anything of its tree is. */
function ofTasks(statuses: readonly TaskStatus[], bind: Bind): string[] {
  const ended = statuses.flatMap((status) => (status === "running" ? [] : STATES_OF_TASK[status]));
  const ways = [
    ...(ended.length > 0 ? [`r.state = ANY(${bind(ended, "text[]")})`] : []),
    ...(statuses.includes("running") ? ["EXISTS (SELECT 1 FROM runs t WHERE t.root_run_uid = r.uid AND t.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS'))"] : []),
  ];
  return ["r.parent_run_uid IS NULL", `(${ways.join(" OR ")})`];
}

function found(search: RunSearch, bind: Bind): string[] {
  if ("runUid" in search) return [`r.uid = ${bind(search.runUid, "uuid")}`];
  const containing = search.words.map((word) => `t.text LIKE ${bind(`%${word.replace(/[\\%_]/g, String.raw`\$&`)}%`, "text")}`);
  return [`r.uid IN (SELECT t.run_uid FROM run_texts t WHERE ${containing.join(" AND ")})`];
}

function continued({ sortBy, isDescending }: RunListQuery, { asOf, key, uid }: RunPosition, bind: Bind): string[] {
  const { expression, type } = KEYS[sortBy];
  const comparison = isDescending ? "<" : ">";
  const bound = `${sortBy === "updated_at" ? "r.updated_at" : "r.created_at"} <= ${bind(asOf, "timestamptz")}`;
  if (key === null) return [bound, `r.skill_spec IS NULL AND r.uid ${comparison} ${bind(uid, "uuid")}`];
  const beyond = `(${expression}, r.uid) ${comparison} (${bind(key, type)}, ${bind(uid, "uuid")})`;
  return [bound, sortBy === "agent" ? `(r.skill_spec IS NULL OR ${beyond})` : beyond];
}

const keyText = (key: Date | string | null): string | null => (key instanceof Date ? key.toISOString() : key);

/** Every run below one, at any depth, without itself. */
const descendants = (uid: string): string => `
  WITH RECURSIVE tree AS (
    SELECT c.uid FROM runs c WHERE c.parent_run_uid = ${uid}
    UNION ALL SELECT c.uid FROM tree t JOIN runs c ON c.parent_run_uid = t.uid)
  SELECT uid FROM tree`;

/** The run that first reported a reference with this canonical URL, among those the caller may see. */
export async function findByReference(sql: Sql, caller: Caller, url: string): Promise<RunUid | undefined> {
  const { rows } = await sql.query<{ uid: RunUid }>(
    `SELECT r.uid FROM artifacts a JOIN runs r ON r.uid = a.run_uid
      WHERE a.artifact_type = 'EXTERNAL_REFERENCE' AND a.data->>'url' = $1 AND a.committed_at IS NOT NULL AND ${visibleRuns("$2", "$3")}
      ORDER BY a.created_at, a.uid LIMIT 1`,
    [url, ...visibleTo(caller)],
  );
  return rows[0]?.uid;
}

/**
 * Conversations of a team's top-level runs that are about what is at a canonical URL, newest first: a run of their trees reported it, or they have it as
 * their ticket's. At most 100.
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
        WHERE metadata @> jsonb_build_object('ticket_url', $2::text) AND parent_run_uid IS NULL AND owner_type = 'team' AND owner_uid = $1) c
      GROUP BY 1 ORDER BY max(created_at) DESC, 1 LIMIT 100`,
    [teamUid, url],
  );
  return rows.map(({ uid }) => uid);
}

/** Visible children of these runs, oldest first. */
export async function listChildren(sql: Sql, caller: Caller, parentUids: readonly string[], limit: number): Promise<Run[]> {
  const text = `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.parent_run_uid = ANY($1::uuid[]) AND ${visibleRuns("$2", "$3")} ORDER BY r.created_at, r.uid LIMIT $4`;
  const { rows } = await sql.query<RunRow>(text, [parentUids, ...visibleTo(caller), limit]);
  return rows.map(toRun);
}

/** Visible runs that serve a conversation, oldest first. A malformed uid finds none. */
export async function listOfConversation(sql: Sql, caller: Caller, conversationUid: string): Promise<Run[]> {
  if (!isUuid(conversationUid)) return [];
  const text = `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.conversation_uid = $1 AND ${visibleRuns("$2", "$3")} ORDER BY r.created_at, r.uid`;
  const { rows } = await sql.query<RunRow>(text, [conversationUid, ...visibleTo(caller)]);
  return rows.map(toRun);
}

/** The newest run of each of these conversations, whoever may see it. Malformed uids find nothing. */
export async function newestOfConversations(sql: Sql, conversationUids: readonly string[]): Promise<Run[]> {
  const text = `SELECT ${RUN_COLUMNS} FROM unnest($1::uuid[]) AS c (uid)
    CROSS JOIN LATERAL (SELECT * FROM runs WHERE conversation_uid = c.uid ORDER BY created_at DESC, uid DESC LIMIT 1) r`;
  const { rows } = await sql.query<RunRow>(text, [conversationUids.filter(isUuid)]);
  return rows.map(toRun);
}

/** Visible runs bound to these conversations. */
export async function listOfConversations(sql: Sql, caller: Caller, conversationUids: readonly string[]): Promise<{ uid: RunUid; conversationUid: string }[]> {
  const text = `SELECT r.uid, r.conversation_uid AS "conversationUid" FROM runs r WHERE r.conversation_uid = ANY($1::uuid[]) AND ${visibleRuns("$2", "$3")}`;
  return (await sql.query<{ uid: RunUid; conversationUid: string }>(text, [conversationUids.filter(isUuid), ...visibleTo(caller)])).rows;
}

/** These runs and every visible run below them. */
export async function listTreeUids(sql: Sql, caller: Caller, uids: readonly string[]): Promise<RunUid[]> {
  const { rows } = await sql.query<{ uid: RunUid }>(
    `WITH RECURSIVE tree AS (
       SELECT c.uid, c.owner_type, c.owner_uid FROM runs c WHERE c.uid = ANY($1::uuid[])
       UNION SELECT c.uid, c.owner_type, c.owner_uid FROM tree t JOIN runs c ON c.parent_run_uid = t.uid)
     SELECT r.uid FROM tree r WHERE ${visibleRuns("$2", "$3")}`,
    [uids, ...visibleTo(caller)],
  );
  return rows.map(({ uid }) => uid);
}
