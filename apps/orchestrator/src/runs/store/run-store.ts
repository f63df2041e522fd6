import type { Caller } from "@millwright/caller";
import { ownersWith } from "@millwright/caller";
import { Batcher, type Database, type Sql } from "@millwright/database";
import { notFound, PROMPT_PREVIEW_CHARACTERS } from "@millwright/errors";
import { as, isUuid } from "@millwright/ids";
import type { AgentUid, ConversationUid, EnvironmentUid, FactoryUid, RunUid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import type { Run, RunMode, RunState, RunStatus } from "../domain/run.ts";
import { canSee } from "../domain/run-visibility.ts";

const STORED = `
  r.uid, r.root_run_uid, r.parent_run_uid, r.retry_of_run_uid, r.depth, r.owner_type, r.owner_uid, r.creator_type, r.creator_uid, r.executor_uid,
  r.agent_uid, r.agent_name, r.factory_uid, r.definition_version, r.environment_uid, r.title, r.state, r.status_message, r.error_code,
  r.error_retryable, r.prompt, r.submitted_prompt, r.mode, r.interactive, r.source, r.origin, r.execution_location,
  r.conversation_uid, r.session_uid, r.trigger_url, r.schedule, r.agent_config, r.agent_skill, r.metadata,
  r.version, r.created_at, r.updated_at, r.started_at, r.finished_at`;

/**
 * Columns of a run, for `FROM runs r`; read the rows with `toRun`. The last columns are subqueries with LIMIT because
 * PostgreSQL plans EXISTS as scans of whole tables here.
 */
export const RUN_COLUMNS = `${STORED},
  (SELECT coalesce(bool_or(x.sandbox_running AND x.state <> 'ENDED'), false) FROM executions x WHERE x.run_uid = r.uid) AS is_sandbox_running,
  r.run_time_ms + coalesce((
    SELECT sum(greatest(extract(epoch FROM clock_timestamp() - x.claimed_at) * 1000, 0)) FROM executions x
     WHERE x.run_uid = r.uid AND x.state IN ('CLAIMED', 'RUNNING', 'STOPPING')), 0)::bigint AS run_time_ms,
  (SELECT jsonb_build_object('until', x.debug_until, 'is_active', l.phase = 'RUNNING') FROM executions x JOIN leases l ON l.execution_id = x.id
    WHERE x.run_uid = r.uid AND x.state = 'DEBUG' AND r.state = 'FAILED' AND l.expires_at > clock_timestamp() AND x.debug_until > clock_timestamp() LIMIT 1) AS debug_window,
  coalesce((SELECT true FROM artifacts a WHERE a.run_uid = r.uid LIMIT 1), false) AS has_artifacts,
  coalesce((SELECT true FROM usage_rows u WHERE u.run_uid = r.uid LIMIT 1), false) AS has_usage`;

const shortened = (column: string): string => `left(r.${column}, ${PROMPT_PREVIEW_CHARACTERS}) AS ${column}`;
const isLong = (column: string): string =>
  `coalesce(char_length(left(r.${column}, ${PROMPT_PREVIEW_CHARACTERS + 1})), 0) > ${PROMPT_PREVIEW_CHARACTERS}`;

/** The same columns for lists: reads only the beginning of prompts, regardless of their size. */
export const LISTED_RUN_COLUMNS = `${RUN_COLUMNS.replace("r.prompt, r.submitted_prompt,", `${shortened("prompt")}, ${shortened("submitted_prompt")},`)},
  ${isLong("prompt")} OR ${isLong("submitted_prompt")} AS is_prompt_truncated`;

/** The same columns for a run that is being inserted and has no rows in other tables yet. */
export const NEW_RUN_COLUMNS = `${STORED}, false AS is_sandbox_running, 0 AS run_time_ms, null::jsonb AS debug_window, false AS has_artifacts, false AS has_usage`;

export type RunRow = {
  uid: string;
  root_run_uid: string;
  parent_run_uid: string | null;
  retry_of_run_uid: string | null;
  depth: number;
  owner_type: "team" | "user";
  owner_uid: string;
  creator_type: string;
  creator_uid: string;
  executor_uid: string;
  agent_uid: string | null;
  agent_name: string | null;
  factory_uid: string | null;
  definition_version: number | null;
  environment_uid: string | null;
  title: string;
  state: RunState;
  status_message: string | null;
  error_code: string | null;
  error_retryable: boolean | null;
  prompt: string;
  submitted_prompt: string | null;
  mode: RunMode;
  interactive: boolean;
  source: string;
  origin: string | null;
  execution_location: "REMOTE" | "LOCAL";
  conversation_uid: string;
  session_uid: string | null;
  trigger_url: string | null;
  schedule: JsonObject | null;
  agent_config: JsonObject;
  agent_skill: JsonObject | null;
  metadata: Record<string, string>;
  run_time_ms: number;
  version: number;
  created_at: Date;
  updated_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  is_sandbox_running: boolean;
  has_artifacts: boolean;
  has_usage: boolean;
  is_prompt_truncated?: boolean;
  debug_window: { until: string; is_active: boolean } | null;
};

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
    const found = new Map(rows.map((row) => [row.uid, row]));
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

/** Returns a run by uid, without an access check. */
export async function findRun(sql: Sql, uid: string): Promise<Run | undefined> {
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

export function toRun(row: RunRow): Run {
  const run: Writable<Run> = {
    uid: as<RunUid>(row.uid),
    rootRunUid: as<RunUid>(row.root_run_uid),
    depth: row.depth,
    owner: { type: row.owner_type, uid: row.owner_uid },
    creatorType: row.creator_type,
    creatorUid: row.creator_uid,
    executorUid: row.executor_uid,
    title: row.title,
    state: row.state,
    prompt: row.prompt,
    mode: row.mode,
    interactive: row.interactive,
    source: row.source,
    executionLocation: row.execution_location,
    conversationUid: as<ConversationUid>(row.conversation_uid),
    agentConfig: row.agent_config,
    metadata: row.metadata,
    runTimeMs: row.run_time_ms,
    isSandboxRunning: row.is_sandbox_running,
    hasArtifacts: row.has_artifacts,
    hasUsage: row.has_usage,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
  if (row.parent_run_uid !== null) run.parentRunUid = as<RunUid>(row.parent_run_uid);
  if (row.retry_of_run_uid !== null) run.retryOfRunUid = as<RunUid>(row.retry_of_run_uid);
  if (row.agent_uid !== null) run.agentUid = as<AgentUid>(row.agent_uid);
  if (row.agent_name !== null) run.agentName = row.agent_name;
  if (row.factory_uid !== null) run.factoryUid = as<FactoryUid>(row.factory_uid);
  if (row.definition_version !== null) run.definitionVersion = row.definition_version;
  if (row.environment_uid !== null) run.environmentUid = as<EnvironmentUid>(row.environment_uid);
  if (row.status_message !== null) run.status = toStatus(row.status_message, row);
  if (row.is_prompt_truncated) run.isPromptTruncated = true;
  if (row.submitted_prompt !== null) run.submittedPrompt = row.submitted_prompt;
  if (row.origin !== null) run.origin = row.origin;
  if (row.session_uid !== null) run.sessionUid = row.session_uid;
  if (row.trigger_url !== null) run.triggerUrl = row.trigger_url;
  if (row.schedule !== null) run.schedule = row.schedule;
  if (row.agent_skill !== null) run.agentSkill = row.agent_skill;
  if (row.debug_window !== null)
    run.debugWindow = { until: new Date(row.debug_window.until), isActive: row.debug_window.is_active };
  if (row.started_at !== null) run.startedAt = row.started_at;
  if (row.finished_at !== null) run.finishedAt = row.finished_at;
  return run;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const toStatus = (message: string, { error_code: errorCode, error_retryable: retryable }: RunRow): RunStatus => ({
  message,
  ...(errorCode === null ? {} : { errorCode }),
  ...(retryable === null ? {} : { retryable }),
});
