import type { Sql } from "@millwright/database";
import { appendEvents } from "@millwright/events";
import { newUid, type RunUid } from "@millwright/ids";
import { topics } from "../../storage/bell.ts";
import type { ChangeContext, LockedRun } from "../domain/run-change.ts";
import { isBackground } from "../../catalog/domain/queue-settings.ts";
import type { FrozenConfig } from "../domain/resolved-run.ts";
import type { RunParent } from "../domain/run-transaction.ts";
import type { RunRecord } from "../domain/run-record.ts";
import type { Owner, Run, RunState } from "../domain/run.ts";
import { runCreated } from "../events/run-events.ts";
import { addAttachments } from "./message-store.ts";
import { presentTrace } from "../../storage/store/present-trace.ts";
import { NEW_RUN_COLUMNS, toRun, type RunRow } from "./run-store.ts";

/** Locks parents. Share locks let siblings be created concurrently, and block transactions that would end a parent. */
export async function lockParents(tx: Sql, uids: readonly string[]): Promise<RunParent[]> {
  if (uids.length === 0) return [];
  const { rows } = await tx.query<{
    uid: RunUid;
    root_run_uid: RunUid;
    depth: number;
    state: RunState;
    owner_type: Owner["type"];
    owner_uid: string;
    metadata: Record<string, string>;
    is_cost_limited: boolean;
  }>(
    `SELECT uid, root_run_uid, depth, state, owner_type, owner_uid, metadata, frozen ?| array['cost_limit_micros', 'cost_limited_above'] AS is_cost_limited FROM runs WHERE uid = ANY($1::uuid[]) ORDER BY uid FOR SHARE`,
    [uids],
  );
  return rows.map(
    ({ uid, root_run_uid, depth, state, owner_type, owner_uid, metadata, is_cost_limited: isCostLimited }) => ({
      uid,
      rootRunUid: root_run_uid,
      depth,
      state,
      metadata,
      isCostLimited,
      owner: { type: owner_type, uid: owner_uid },
    }),
  );
}

/** Returns the run that a cause has already created. */
export async function findByCause(sql: Sql, ownerUid: string, causeKey: string): Promise<RunUid | undefined> {
  const { rows } = await sql.query<{ uid: RunUid }>("SELECT uid FROM runs WHERE owner_uid = $1 AND cause_key = $2", [
    ownerUid,
    causeKey,
  ]);
  return rows[0]?.uid;
}

/** Locks a conversation until the transaction ends. Returns the owner's current (newest top-level) run in it. */
export async function holdConversation(
  tx: Sql,
  { conversationUid, owner }: Pick<LockedRun, "conversationUid" | "owner">,
): Promise<RunUid | undefined> {
  await tx.query("SELECT pg_advisory_xact_lock(hashtextextended('conversation ' || $1::text, 0))", [conversationUid]);
  const { rows } = await tx.query<{ uid: RunUid }>(
    `SELECT uid FROM runs
      WHERE conversation_uid = $1 AND owner_type = $2 AND owner_uid = $3
      ORDER BY parent_run_uid IS NULL DESC, created_at DESC, uid DESC LIMIT 1`,
    [conversationUid, owner.type, owner.uid],
  );
  return rows[0]?.uid;
}

/**
 * Inserts a run with its first execution, queued, its prompt and its first events, and returns it. Returns undefined
 * and inserts nothing if its cause has already created a run; waits for a concurrent transaction with the same cause.
 */
export async function insertRun(tx: Sql, run: RunRecord, context: ChangeContext): Promise<Run | undefined> {
  const inserting = tx.query<RunRow & { is_queued: boolean }>(INSERT_RUN, [
    ...rowOf(run),
    ...laneColumns(run),
    run.message?.uid ?? null,
    newUid(),
    presentTrace(),
    ...laterColumns(run),
  ]);
  const [row] = run.causeKey
    ? (await inserting).rows
    : (await Promise.all([inserting, appendEvents(tx, [runCreated(run, context)])]))[0].rows;
  if (!row) return undefined;
  if (!row.is_queued) {
    const laneId = await ensureLane(tx, run);
    await tx.query(
      "INSERT INTO executions (run_uid, seq, state, lane_id, depth, traceparent) VALUES ($1, 1, 'QUEUED', $2, $3, $4)",
      [run.uid, laneId, run.depth, presentTrace()],
    );
  }
  if (run.message) await addAttachments(tx, run.message.uid, run.message.attachments);
  if (run.causeKey) await appendEvents(tx, [runCreated(run, context)]);
  tx.announce?.(topics.work);
  return toRun(row);
}

const laterColumns = (run: RunRecord): unknown[] => [
  run.retryOfRunUid ?? null,
  run.executionLocation,
  run.schedule ? JSON.stringify(run.schedule) : null,
  run.triggerUrl ?? null,
  isBackground(run.source),
];

/** Inserts all rows of a new run in one statement: under load, one round trip costs more than the whole statement. */
const INSERT_RUN = `
  WITH run AS (
    INSERT INTO runs (uid, root_run_uid, parent_run_uid, depth, owner_type, owner_uid, creator_type, creator_uid, executor_uid, agent_uid,
                      agent_name, factory_uid, definition_version, environment_uid, title, state, prompt, submitted_prompt, mode, interactive,
                      source, origin, conversation_uid, config_name, model_id, skill_spec, agent_config, agent_skill, frozen, metadata, cause_key,
                      retry_of_run_uid, execution_location, schedule, trigger_url)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 'QUEUED', $16, $17, $18, $19, $20, $21, $22, $23, $24, $25,
            $26::jsonb, $27::jsonb, $28::jsonb, $29::jsonb, $30, $42::uuid, $43, $44::jsonb, $45)
    ON CONFLICT (owner_uid, cause_key) WHERE cause_key IS NOT NULL DO NOTHING RETURNING *),
  lane AS (${findLane(["$31", "$32", "$33", "$34", "$35", "$36", "$37", "$38", "$46"])}),
  execution AS (
    INSERT INTO executions (run_uid, seq, state, lane_id, depth, traceparent) SELECT run.uid, 1, 'QUEUED', lane.id, run.depth, $41 FROM run, lane RETURNING run_uid),
  stream AS (INSERT INTO run_streams (run_uid, last_seq) SELECT uid, 1 FROM run),
  message AS (
    INSERT INTO messages (uid, run_uid, seq, kind, text, mode, author_type, author_uid)
    SELECT $39::uuid, uid, 1, 'prompt', prompt, mode, creator_type, creator_uid FROM run WHERE $39 IS NOT NULL),
  event AS (
    INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, payload)
    SELECT uid, 1, $40::uuid, 'run_created', clock_timestamp(), '{}' FROM run)
  SELECT ${NEW_RUN_COLUMNS}, EXISTS (SELECT 1 FROM execution) AS is_queued FROM run r`;

const rowOf = (run: RunRecord): unknown[] => {
  const { frozen } = run;
  return [
    run.uid,
    run.rootRunUid,
    run.parentRunUid ?? null,
    run.depth,
    run.owner.type,
    run.owner.uid,
    run.creator.type,
    run.creator.uid,
    run.executorUid,
    frozen.agent_uid ?? null,
    frozen.agent_name ?? null,
    frozen.factory_uid ?? null,
    frozen.definition_version ?? null,
    frozen.environment_uid ?? null,
    run.title,
    run.prompt,
    run.submittedPrompt ?? null,
    run.mode,
    run.interactive,
    run.source,
    run.origin ?? null,
    run.conversationUid,
    text(run.agentConfig["name"]),
    text(run.agentConfig["model_id"]),
    text(run.agentConfig["skill_spec"]),
    JSON.stringify(run.agentConfig),
    run.agentSkill ? JSON.stringify(run.agentSkill) : null,
    JSON.stringify(frozen),
    JSON.stringify(run.metadata),
    run.causeKey ?? null,
  ];
};

export const text = (value: unknown): string | null => (typeof value === "string" ? value : null);

type LaneOwner = { readonly owner: Owner; readonly frozen: FrozenConfig; readonly source: string };

export const laneKey = (run: LaneOwner): unknown[] => [...laneColumns(run), isBackground(run.source)];

const laneColumns = ({ owner, frozen: { requirements, agent_uid, factory_uid } }: LaneOwner): unknown[] => [
  owner.type,
  owner.uid,
  agent_uid ?? null,
  factory_uid ?? null,
  requirements.worker_host ?? null,
  requirements.harness,
  requirements.image ?? null,
  requirements.arch ?? null,
];

function findLane([type, uid, agent, factory, host, harness, image, arch, background]: readonly string[]): string {
  return `SELECT id FROM lanes WHERE owner_type = ${type} AND owner_uid = ${uid}::uuid AND agent_uid IS NOT DISTINCT FROM ${agent}::uuid
             AND factory_uid IS NOT DISTINCT FROM ${factory}::uuid AND worker_host IS NOT DISTINCT FROM ${host} AND harness = ${harness}
             AND image IS NOT DISTINCT FROM ${image} AND arch IS NOT DISTINCT FROM ${arch} AND is_background = ${background}::boolean
             AND waits_for_budget IS NULL`;
}

export async function ensureLane(tx: Sql, run: LaneOwner): Promise<number> {
  const key = laneKey(run);
  await tx.query(
    "INSERT INTO lanes (owner_type, owner_uid, agent_uid, factory_uid, worker_host, harness, image, arch, is_background) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING",
    key,
  );
  const { rows } = await tx.query<{ id: number }>(
    findLane(["$1", "$2", "$3", "$4", "$5", "$6", "$7", "$8", "$9"]),
    key,
  );
  return (rows[0] as { id: number }).id;
}
