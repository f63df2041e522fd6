import type { Sql } from "@millwright/database";
import { appendEvents } from "@millwright/events";
import { newUid, type RunUid } from "@millwright/ids";
import { topics } from "../../storage/bell.ts";
import type { ChangeContext } from "../domain/run-change.ts";
import type { RunRecord } from "../domain/run-record.ts";
import type { Run } from "../domain/run.ts";
import { runCreated } from "../events/run-events.ts";
import { ensureLane, laneKey, text } from "./create-store.ts";
import { presentTrace } from "../../storage/store/present-trace.ts";
import { NEW_RUN_COLUMNS, toRun, type RunRow } from "./run-store.ts";

/**
 * Returns the runs that causes have already created, in the order of the causes. Each cause is looked up on its own:
 * with a join, the planner may read all runs that have a cause.
 */
export async function findByCauses(
  sql: Sql,
  causes: readonly { readonly ownerUid: string; readonly causeKey: string }[],
): Promise<(RunUid | undefined)[]> {
  const { rows } = await sql.query<{ n: number; uid: RunUid | null }>(
    `SELECT g.n, (SELECT r.uid FROM runs r WHERE r.owner_uid = g.o AND r.cause_key = g.c) AS uid FROM jsonb_to_recordset($1::jsonb) AS g (n integer, o uuid, c text)`,
    [JSON.stringify(causes.map(({ ownerUid, causeKey }, n) => ({ n, o: ownerUid, c: causeKey })))],
  );
  const found = new Map(rows.map(({ n, uid }) => [n, uid]));
  return causes.map((_cause, n) => found.get(n) ?? undefined);
}

/**
 * Inserts runs as `insertRun` of create-store.ts inserts one. The runs have no parents and no files, and each has a
 * cause. Returns those that are new.
 */
export async function insertRuns(tx: Sql, runs: readonly RunRecord[], context: ChangeContext): Promise<Run[]> {
  if (runs.length === 0) return [];
  const lanes = new Map<string, number>();
  for (const run of runs) {
    const key = JSON.stringify(laneKey(run));
    if (!lanes.has(key)) lanes.set(key, await ensureLane(tx, run));
  }
  const rows = runs.map((run) => rowOf(run, lanes.get(JSON.stringify(laneKey(run)))!));
  const alike = commonOf(rows);
  const own = rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !alike.has(name))));
  const { rows: inserted } = await tx.query<RunRow>(INSERT_RUNS, [
    JSON.stringify(own),
    presentTrace(),
    JSON.stringify(Object.fromEntries(alike)),
  ]);
  const uids = new Set(inserted.map(({ uid }) => uid));
  await appendEvents(
    tx,
    runs
      .filter(({ uid }) => uids.has(uid))
      .map((run) => runCreated(run, { ...context, ...(run.causeKey ? { cause: run.causeKey } : {}) })),
  );
  tx.announce?.(topics.work);
  return inserted.map(toRun);
}

type Row = Readonly<Record<string, unknown>>;

/**
 * Returns the columns whose value is the same in all rows, so that it is written and parsed once. When many schedules
 * create the same run, most columns are common. Objects are compared by identity.
 */
const commonOf = ([first = {}, ...others]: readonly Row[]): ReadonlyMap<string, unknown> =>
  new Map(Object.entries(first).filter(([name, value]) => others.every((row) => row[name] === value)));

const COLUMNS = {
  uid: "uuid",
  root_run_uid: "uuid",
  depth: "integer",
  owner_type: "text",
  owner_uid: "uuid",
  creator_type: "text",
  creator_uid: "text",
  executor_uid: "text",
  agent_uid: "uuid",
  agent_name: "text",
  factory_uid: "uuid",
  definition_version: "integer",
  environment_uid: "text",
  title: "text",
  state: "text",
  prompt: "text",
  submitted_prompt: "text",
  mode: "text",
  interactive: "boolean",
  source: "text",
  origin: "text",
  conversation_uid: "uuid",
  config_name: "text",
  model_id: "text",
  skill_spec: "text",
  agent_config: "jsonb",
  agent_skill: "jsonb",
  frozen: "jsonb",
  metadata: "jsonb",
  cause_key: "text",
  execution_location: "text",
  schedule: "jsonb",
  trigger_url: "text",
} as const;
const NAMES = Object.keys(COLUMNS).join(", ");
const GIVEN = { ...COLUMNS, lane_id: "bigint", message_uid: "uuid", event_uid: "uuid" } as const;
const TYPES = Object.entries(GIVEN)
  .map(([name, type]) => `${name} ${type}`)
  .join(", ");

const INSERT_RUNS = `
  WITH given AS MATERIALIZED (
    SELECT ${Object.keys(GIVEN)
      .map((name) => `coalesce(own.${name}, alike.${name}) AS ${name}`)
      .join(", ")}
      FROM jsonb_to_recordset($1::jsonb) AS own (${TYPES}), jsonb_to_record($3::jsonb) AS alike (${TYPES})),
  run AS (
    INSERT INTO runs (${NAMES}) SELECT ${NAMES} FROM given
    ON CONFLICT (owner_uid, cause_key) WHERE cause_key IS NOT NULL DO NOTHING RETURNING *),
  fresh AS (SELECT g.* FROM given g JOIN run USING (uid)),
  execution AS (INSERT INTO executions (run_uid, seq, state, lane_id, depth, traceparent) SELECT uid, 1, 'QUEUED', lane_id, depth, $2 FROM fresh),
  stream AS (INSERT INTO run_streams (run_uid, last_seq) SELECT uid, 1 FROM fresh),
  message AS (
    INSERT INTO messages (uid, run_uid, seq, kind, text, mode, author_type, author_uid)
    SELECT message_uid, uid, 1, 'prompt', prompt, mode, creator_type, creator_uid FROM fresh WHERE message_uid IS NOT NULL),
  event AS (
    INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, payload)
    SELECT uid, 1, event_uid, 'run_created', clock_timestamp(), '{}' FROM fresh)
  SELECT ${NEW_RUN_COLUMNS} FROM run r`;

/** Absent properties become null. */
const rowOf = (run: RunRecord, laneId: number): Row => ({
  uid: run.uid,
  root_run_uid: run.rootRunUid,
  depth: run.depth,
  owner_type: run.owner.type,
  owner_uid: run.owner.uid,
  creator_type: run.creator.type,
  creator_uid: run.creator.uid,
  executor_uid: run.executorUid,
  agent_uid: run.frozen.agent_uid,
  agent_name: run.frozen.agent_name,
  factory_uid: run.frozen.factory_uid,
  definition_version: run.frozen.definition_version,
  environment_uid: run.frozen.environment_uid,
  title: run.title,
  state: "QUEUED",
  prompt: run.prompt,
  submitted_prompt: run.submittedPrompt,
  mode: run.mode,
  interactive: run.interactive,
  source: run.source,
  origin: run.origin,
  conversation_uid: run.conversationUid,
  config_name: text(run.agentConfig["name"]),
  model_id: text(run.agentConfig["model_id"]),
  skill_spec: text(run.agentConfig["skill_spec"]),
  agent_config: run.agentConfig,
  agent_skill: run.agentSkill,
  frozen: run.frozen,
  metadata: run.metadata,
  cause_key: run.causeKey,
  execution_location: run.executionLocation,
  schedule: run.schedule,
  trigger_url: run.triggerUrl,
  lane_id: laneId,
  message_uid: run.message?.uid,
  event_uid: newUid(),
});
