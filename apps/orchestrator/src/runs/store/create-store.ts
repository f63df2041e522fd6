import type { Sql } from "@millwright/database";
import { appendEvents } from "@millwright/events";
import { newUid, type RunUid } from "@millwright/ids";
import { topics } from "../../storage/wakeups.ts";
import type { ChangeContext, LockedRun } from "../domain/run-change.ts";
import { isBackground } from "../../catalog/domain/queue-settings.ts";
import type { RunParent } from "../domain/run-parent.ts";
import type { RunRecord, Cause } from "../domain/run-record.ts";
import type { Owner, Run, RunState } from "../domain/run.ts";
import { runCreated } from "../events/run-events.ts";
import { addAttachments } from "./attachment-store.ts";
import { currentTraceparent } from "../../storage/store/current-traceparent.ts";
import { NEW_ROW, NEW_RUN_COLUMNS, newRow, toRun, type RunRow } from "./run-fields.ts";

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

/**
 * Returns the runs that causes have already created, in the order of the causes. Each cause is looked up on its own:
 * with a join, the planner may read all runs that have a cause.
 */
export async function findByCauses(sql: Sql, causes: readonly Cause[]): Promise<(RunUid | undefined)[]> {
  if (causes.length === 0) return [];
  const { rows } = await sql.query<{ n: number; uid: RunUid | null }>(
    `SELECT g.n, (SELECT r.uid FROM runs r WHERE r.owner_uid = g.o AND r.cause_key = g.c) AS uid FROM jsonb_to_recordset($1::jsonb) AS g (n integer, o uuid, c text)`,
    [JSON.stringify(causes.map(({ ownerUid, causeKey }, n) => ({ n, o: ownerUid, c: causeKey })))],
  );
  const found = new Map(rows.map(({ n, uid }) => [n, uid]));
  return causes.map((_cause, n) => found.get(n) ?? undefined);
}

/** Locks a conversation until the transaction ends. Returns the owner's current (newest top-level) run in it. */
export async function lockConversation(
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
 * Inserts runs in one statement, each with its first execution, queued, its prompt and its first events. Returns those
 * that are new: a cause that has already created a run creates no other. Waits for concurrent transactions with the
 * same causes.
 */
export async function insertRuns(tx: Sql, runs: readonly RunRecord[], context: ChangeContext): Promise<Run[]> {
  if (runs.length === 0) return [];
  const lanes = lanesOf(runs);
  const rows = runs.map((run) => ({
    ...newRow(run),
    lane: lanes.indexOf(laneKey(run)),
    message_uid: run.message?.uid,
    event_uid: newUid(),
  }));
  const inserting = insertRows(tx, rows, lanes);
  // A run with a cause may already exist; its insert is then skipped.
  const canAllBeInserted = runs.every(({ causeKey }) => causeKey === undefined);
  const [{ rows: inserted }] = await Promise.all([inserting, canAllBeInserted && announceRuns(tx, runs, context)]);
  const uids = new Set(inserted.map(({ uid }) => uid));
  const insertedRuns = runs.filter(({ uid }) => uids.has(uid));
  const unqueued = new Set(inserted.flatMap((row) => (row.is_queued ? [] : [row.uid])));
  for (const run of insertedRuns) {
    if (unqueued.has(run.uid)) await queueInNewLane(tx, run);
    if (run.message) await addAttachments(tx, run.message.uid, run.message.attachments);
  }
  if (!canAllBeInserted) await announceRuns(tx, insertedRuns, context);
  return inserted.map(toRun);
}

type Row = Readonly<Record<string, unknown>>;

function insertRows(tx: Sql, rows: readonly Row[], lanes: readonly string[]) {
  const params = [`[${lanes.join(",")}]`, currentTraceparent()];
  const [first, ...rest] = rows;
  if (rest.length === 0) return tx.query<InsertedRow>(INSERT_RUN, [JSON.stringify(first), ...params]);
  const common = commonOf(rows);
  const own = rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !common.has(name))));
  return tx.query<InsertedRow>(INSERT_RUNS, [
    JSON.stringify(own),
    ...params,
    JSON.stringify(Object.fromEntries(common)),
  ]);
}

type InsertedRow = RunRow & { readonly is_queued: boolean };

async function announceRuns(tx: Sql, runs: readonly RunRecord[], context: ChangeContext): Promise<void> {
  await appendEvents(
    tx,
    runs.map((run) => runCreated(run, { ...context, cause: run.causeKey || undefined })),
  );
  if (runs.length > 0) tx.announce?.(topics.work);
}

/**
 * Returns the columns whose value is the same in all rows, so that it is written and parsed once. When many schedules
 * create the same run, most columns are common. Objects are compared by identity.
 */
const commonOf = ([first = {}, ...others]: readonly Row[]): ReadonlyMap<string, unknown> =>
  new Map(Object.entries(first).filter(([name, value]) => others.every((row) => row[name] === value)));

const NAMES = Object.keys(NEW_ROW).join(", ");
const GIVEN = { ...NEW_ROW, lane: "integer", message_uid: "uuid", event_uid: "uuid" } as const;
const typed = (columns: Readonly<Record<string, string>>): string =>
  Object.entries(columns)
    .map(([name, type]) => `${name} ${type}`)
    .join(", ");

const LANE = {
  owner_type: "text",
  owner_uid: "uuid",
  agent_uid: "uuid",
  factory_uid: "uuid",
  worker_host: "text",
  harness: "text",
  image: "text",
  arch: "text",
  is_background: "boolean",
} as const;

/** Returns the lane of a run as JSON. Equal lanes have equal texts. */
function laneKey({ owner, frozen, source }: RunRecord): string {
  const { worker_host, harness, image, arch } = frozen.requirements;
  const lane: Record<keyof typeof LANE, unknown> = {
    owner_type: owner.type,
    owner_uid: owner.uid,
    agent_uid: frozen.agent_uid,
    factory_uid: frozen.factory_uid,
    worker_host,
    harness,
    image,
    arch,
    is_background: isBackground(source),
  };
  return JSON.stringify(lane);
}

const lanesOf = (runs: readonly RunRecord[]): string[] => [...new Set(runs.map(laneKey))];

/** The lanes of `wanted`, in their order; the id of a lane that does not exist yet is null. */
const lanesIn = (wanted: string): string => `
  SELECT n - 1 AS n, (
      SELECT id FROM lanes l
       WHERE l.owner_type = w.owner_type AND l.owner_uid = w.owner_uid AND l.agent_uid IS NOT DISTINCT FROM w.agent_uid
         AND l.factory_uid IS NOT DISTINCT FROM w.factory_uid AND l.worker_host IS NOT DISTINCT FROM w.worker_host
         AND l.harness = w.harness AND l.image IS NOT DISTINCT FROM w.image AND l.arch IS NOT DISTINCT FROM w.arch
         AND l.is_background = w.is_background AND l.waits_for_budget IS NULL) AS id
    FROM ROWS FROM (jsonb_to_recordset(${wanted}::jsonb) AS (${typed(LANE)})) WITH ORDINALITY AS w (${Object.keys(LANE).join(", ")}, n)`;

/**
 * Returns the statement that inserts all rows of new runs: under load, one round trip costs more than the whole
 * statement. `given` returns their values; $2: their lanes; $3: the trace of the request.
 */
const insertingAll = (given: string): string => `
  WITH given AS MATERIALIZED (${given}),
  lane AS MATERIALIZED (${lanesIn("$2")}),
  run AS (
    INSERT INTO runs (${NAMES}) SELECT ${NAMES} FROM given
    ON CONFLICT (owner_uid, cause_key) WHERE cause_key IS NOT NULL DO NOTHING RETURNING *),
  fresh AS (SELECT g.*, lane.id AS lane_id FROM given g JOIN run USING (uid) JOIN lane ON lane.n = g.lane),
  execution AS (
    INSERT INTO executions (run_uid, seq, state, lane_id, depth, traceparent)
    SELECT uid, 1, 'QUEUED', lane_id, depth, $3 FROM fresh WHERE lane_id IS NOT NULL RETURNING run_uid),
  stream AS (INSERT INTO run_streams (run_uid, last_seq) SELECT uid, 1 FROM fresh),
  message AS (
    INSERT INTO messages (uid, run_uid, seq, kind, text, mode, author_type, author_uid)
    SELECT message_uid, uid, 1, 'prompt', prompt, mode, creator_type, creator_uid FROM fresh WHERE message_uid IS NOT NULL),
  event AS (
    INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, payload)
    SELECT uid, 1, event_uid, 'run_created', clock_timestamp(), '{}' FROM fresh)
  SELECT ${NEW_RUN_COLUMNS}, x.run_uid IS NOT NULL AS is_queued FROM run r LEFT JOIN execution x ON x.run_uid = r.uid`;

const INSERT_RUN = insertingAll(`SELECT * FROM jsonb_to_record($1::jsonb) AS run (${typed(GIVEN)})`);

/** $4: the values that all runs have in common. */
const INSERT_RUNS = insertingAll(`
    SELECT ${Object.keys(GIVEN)
      .map((name) => `coalesce(own.${name}, common.${name}) AS ${name}`)
      .join(", ")}
      FROM jsonb_to_recordset($1::jsonb) AS own (${typed(GIVEN)}), jsonb_to_record($4::jsonb) AS common (${typed(GIVEN)})`);

const LANE_COLUMNS = Object.keys(LANE).join(", ");

/** Queues a new run in a lane that did not exist when the run was inserted. */
async function queueInNewLane(tx: Sql, run: RunRecord): Promise<void> {
  const lane = [`[${laneKey(run)}]`];
  await tx.query(
    `INSERT INTO lanes (${LANE_COLUMNS}) SELECT ${LANE_COLUMNS} FROM jsonb_to_recordset($1::jsonb) AS w (${typed(LANE)}) ON CONFLICT DO NOTHING`,
    lane,
  );
  // A statement of its own, so that it sees a lane that another transaction has inserted concurrently.
  await tx.query(
    `INSERT INTO executions (run_uid, seq, state, lane_id, depth, traceparent)
     SELECT $2, 1, 'QUEUED', lane.id, $3, $4 FROM (${lanesIn("$1")}) lane`,
    [...lane, run.uid, run.depth, currentTraceparent()],
  );
}
