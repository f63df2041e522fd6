import type { Caller } from "@millwright/caller";
import { actorOf, teamsWith } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import { notFound } from "@millwright/errors";
import { as, isUuid } from "@millwright/ids";
import type { AgentUid, ConversationUid, EnvironmentUid, FactoryUid, RunUid } from "@millwright/ids";
import type { JsonObject, Run, RunMode, RunState, RunStatus } from "../domain/run.ts";

const STORED = `
  r.uid, r.root_run_uid, r.parent_run_uid, r.depth, r.owner_type, r.owner_uid, r.creator_type, r.creator_uid, r.executor_uid,
  r.agent_uid, r.agent_name, r.factory_uid, r.definition_version, r.environment_uid, r.title, r.state, r.status_message, r.error_code,
  r.error_retryable, r.prompt, r.submitted_prompt, r.mode, r.interactive, r.source, r.origin, r.execution_location,
  r.conversation_uid, r.session_uid, r.trigger_url, r.schedule, r.agent_config, r.agent_skill, r.metadata,
  r.version, r.created_at, r.updated_at, r.started_at, r.finished_at`;

/** Columns of a run, for `FROM runs r`; read the rows with `toRun`. (As EXISTS the last ones would be planned as scans of whole tables.) */
export const RUN_COLUMNS = `${STORED},
  (SELECT coalesce(bool_or(x.sandbox_running AND x.state <> 'ENDED'), false) FROM executions x WHERE x.run_uid = r.uid) AS is_sandbox_running,
  r.run_time_ms + coalesce((
    SELECT sum(greatest(extract(epoch FROM clock_timestamp() - x.claimed_at) * 1000, 0)) FROM executions x
     WHERE x.run_uid = r.uid AND x.state IN ('CLAIMED', 'RUNNING', 'STOPPING')), 0)::bigint AS run_time_ms,
  coalesce((SELECT true FROM artifacts a WHERE a.run_uid = r.uid LIMIT 1), false) AS has_artifacts,
  coalesce((SELECT true FROM usage_rows u WHERE u.run_uid = r.uid LIMIT 1), false) AS has_usage`;

/** The same, of a run that is being inserted: nothing belongs to it yet. */
export const NEW_RUN_COLUMNS = `${STORED}, false AS is_sandbox_running, 0 AS run_time_ms, false AS has_artifacts, false AS has_usage`;

export type RunRow = {
  uid: string; root_run_uid: string; parent_run_uid: string | null; depth: number;
  owner_type: "team" | "user"; owner_uid: string; creator_type: string; creator_uid: string; executor_uid: string;
  agent_uid: string | null; agent_name: string | null; factory_uid: string | null; definition_version: number | null;
  environment_uid: string | null; title: string; state: RunState; status_message: string | null; error_code: string | null;
  error_retryable: boolean | null; prompt: string; submitted_prompt: string | null; mode: RunMode; interactive: boolean;
  source: string; origin: string | null; execution_location: "REMOTE" | "LOCAL"; conversation_uid: string;
  session_uid: string | null; trigger_url: string | null; schedule: JsonObject | null; agent_config: JsonObject;
  agent_skill: JsonObject | null; metadata: Record<string, string>; run_time_ms: number; version: number;
  created_at: Date; updated_at: Date; started_at: Date | null; finished_at: Date | null; is_sandbox_running: boolean;
  has_artifacts: boolean; has_usage: boolean;
};

/** Which runs (`r`) a caller may see, as a condition over two parameters; `visibleTo` gives their values. */
export const visibleRuns = (teams: string, user: string): string =>
  `((r.owner_type = 'team' AND r.owner_uid = ANY(${teams}::uuid[])) OR (r.owner_type = 'user' AND r.owner_uid::text = ${user}))`;

export const visibleTo = (caller: Caller): [teams: string[], user: string] => [teamsWith(caller, "run.view"), actorOf(caller).uid];

/** The run, if the caller may see it. A malformed uid finds nothing. */
export async function findVisibleRun(sql: Sql, caller: Caller, uid: string): Promise<Run | undefined> {
  if (!isUuid(uid)) return undefined;
  const text = `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.uid = $1 AND ${visibleRuns("$2", "$3")}`;
  const { rows } = await sql.query<RunRow>(text, [uid, ...visibleTo(caller)]);
  return rows[0] && toRun(rows[0]);
}

/** Errors: run_not_found (absent or not visible). */
export async function getVisibleRun(sql: Sql, caller: Caller, uid: string): Promise<Run> {
  const run = await findVisibleRun(sql, caller, uid);
  if (!run) throw notFound("run");
  return run;
}

/** A run by uid, whoever asks. */
export async function findRun(sql: Sql, uid: string): Promise<Run | undefined> {
  const { rows } = await sql.query<RunRow>(`SELECT ${RUN_COLUMNS} FROM runs r WHERE r.uid = $1`, [uid]);
  return rows[0] && toRun(rows[0]);
}

/** The newest run of a conversation that the caller may see. */
export async function findNewestOfConversation(sql: Sql, caller: Caller, conversationUid: string): Promise<Run | undefined> {
  if (!isUuid(conversationUid)) return undefined;
  const text = `SELECT ${RUN_COLUMNS} FROM runs r WHERE r.conversation_uid = $1 AND ${visibleRuns("$2", "$3")}
                 ORDER BY r.created_at DESC, r.uid DESC LIMIT 1`;
  const { rows } = await sql.query<RunRow>(text, [conversationUid, ...visibleTo(caller)]);
  return rows[0] && toRun(rows[0]);
}

/** How many runs of a factory are not terminal. */
export async function countLiveRuns(sql: Sql, factoryUid: string): Promise<number> {
  const text = `SELECT count(*) AS live FROM runs WHERE factory_uid = $1 AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')`;
  const { rows } = await sql.query<{ live: number }>(text, [factoryUid]);
  return rows[0]?.live ?? 0;
}

export function toRun(row: RunRow): Run {
  return {
    uid: as<RunUid>(row.uid),
    rootRunUid: as<RunUid>(row.root_run_uid),
    ...optional("parentRunUid", row.parent_run_uid as RunUid | null),
    depth: row.depth,
    owner: { type: row.owner_type, uid: row.owner_uid },
    creatorType: row.creator_type,
    creatorUid: row.creator_uid,
    executorUid: row.executor_uid,
    ...optional("agentUid", row.agent_uid as AgentUid | null),
    ...optional("agentName", row.agent_name),
    ...optional("factoryUid", row.factory_uid as FactoryUid | null),
    ...optional("definitionVersion", row.definition_version),
    ...optional("environmentUid", row.environment_uid as EnvironmentUid | null),
    title: row.title,
    state: row.state,
    ...optional("status", toStatus(row)),
    prompt: row.prompt,
    ...optional("submittedPrompt", row.submitted_prompt),
    mode: row.mode,
    interactive: row.interactive,
    source: row.source,
    ...optional("origin", row.origin),
    executionLocation: row.execution_location,
    conversationUid: as<ConversationUid>(row.conversation_uid),
    ...optional("sessionUid", row.session_uid),
    ...optional("triggerUrl", row.trigger_url),
    ...optional("schedule", row.schedule),
    agentConfig: row.agent_config,
    ...optional("agentSkill", row.agent_skill),
    metadata: row.metadata,
    runTimeMs: row.run_time_ms,
    isSandboxRunning: row.is_sandbox_running,
    hasArtifacts: row.has_artifacts,
    hasUsage: row.has_usage,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    ...optional("startedAt", row.started_at),
    ...optional("finishedAt", row.finished_at),
  };
}

function toStatus(row: Pick<RunRow, "status_message" | "error_code" | "error_retryable">): RunStatus | null {
  if (row.status_message === null) return null;
  return { message: row.status_message, ...optional("errorCode", row.error_code), ...optional("retryable", row.error_retryable) };
}

/** `{ [name]: value }`, or nothing for null. */
const optional = <K extends string, T>(name: K, value: T | null): { [P in K]?: T } =>
  value === null ? {} : ({ [name]: value } as { [P in K]: T });
