import type { Database, Sql } from "@millwright/database";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import { appendEvents, type NewEvent } from "@millwright/events";
import type { IdempotentRequest } from "@millwright/idempotency";
import type { ConversationUid, FactoryUid, RunUid, TaskUid, TeamUid } from "@millwright/ids";
import { conversationBound, type Task, type TaskQuery, type TaskStage } from "../domain/task.ts";
import { responses } from "./idempotency.ts";

const COLUMNS = `uid, factory_uid AS "factoryUid", team_uid AS "teamUid", conversation_uid AS "conversationUid", run_uid AS "runUid",
  current_run_uid AS "currentRunUid", started_by_uid AS "startedByUid", title, description, stage, stage_run_version AS "stageRunVersion", ticket_source AS "ticketSource", ticket_id AS "ticketId", version,
  created_at AS "createdAt", updated_at AS "updatedAt"`;

/** The maximum number of bound tasks; the same as of conversations per request. */
const BOUND_MAX = 100;

/** Returns the queries of live tasks. Deleted tasks are hidden from every method. */
export function taskStore(database: Database, clock: Clock) {
  const { sql } = database;
  const findWhere = async (where: string, params: unknown[]): Promise<Task | undefined> =>
    (await sql.query<Task>(`SELECT ${COLUMNS} FROM tasks WHERE ${where} AND deleted_at IS NULL`, params)).rows[0];
  return {
    find: (factoryUid: FactoryUid, uid: TaskUid) => findWhere("factory_uid = $1 AND uid = $2", [factoryUid, uid]),

    findByConversation: (factoryUid: FactoryUid, conversationUid: ConversationUid) =>
      findWhere("factory_uid = $1 AND conversation_uid = $2", [factoryUid, conversationUid]),

    /** Returns the task that was created for a run, even if the task has moved to another conversation. */
    findByFirstRun: (factoryUid: FactoryUid, runUid: RunUid) =>
      findWhere("factory_uid = $1 AND run_uid = $2", [factoryUid, runUid]),

    /** Lists the tasks of tickets (ignoring case) and of conversations, newest first, without cancelled tasks. */
    boundTo: async (
      factoryUid: FactoryUid,
      {
        ticket,
        conversationUids,
      }: { ticket: { source: string; ids: readonly string[] }; conversationUids: readonly string[] },
    ): Promise<Task[]> =>
      (
        await sql.query<Task>(
          `SELECT ${COLUMNS} FROM tasks
          WHERE factory_uid = $1 AND deleted_at IS NULL AND stage <> 'CANCELLED'
            AND (lower(ticket_id) = ANY ($3::text[]) AND lower(ticket_source) = $2 OR conversation_uid = ANY ($4::uuid[]))
          ORDER BY created_at DESC, uid DESC LIMIT ${BOUND_MAX}`,
          [factoryUid, ticket.source.toLowerCase(), ticket.ids.map((id) => id.toLowerCase()), conversationUids],
        )
      ).rows,

    /**
     * Inserts a task with its event. A repeated request returns the task as it was created.
     * Errors: factory_not_found · conversation_bound · idempotency_mismatch.
     */
    create: (task: Task, event: NewEvent, request: IdempotentRequest | undefined): Promise<Task> =>
      database.transaction(async (tx) => {
        const created = await responses.once(tx, request, clock.now(), async () => {
          if (!(await lockFactoryForShare(tx, task.factoryUid))) throw notFound("factory");
          if (!(await insertTask(tx, task))) throw conversationBound();
          await appendEvents(tx, [event]);
          return task;
        });
        return { ...created, createdAt: new Date(created.createdAt), updatedAt: new Date(created.updatedAt) };
      }),

    /** Marks the task as deleted and releases its conversation. Errors: task_not_found. */
    delete: (factoryUid: FactoryUid, uid: TaskUid, eventOf: (task: Task) => NewEvent): Promise<void> =>
      database.transaction(async (tx) => {
        const task = await locked(tx, factoryUid, uid);
        const now = clock.now();
        const deleted = { ...task, version: task.version + 1, updatedAt: now };
        await tx.query("UPDATE tasks SET deleted_at = $2, updated_at = $2, version = $3 WHERE uid = $1", [
          uid,
          now,
          deleted.version,
        ]);
        await appendEvents(tx, [eventOf(deleted)]);
      }),

    async list(query: TaskQuery): Promise<Task[]> {
      const { sortBy, sortOrder } = query; // validated enums: safe in SQL
      const beyond = sortOrder === "asc" ? ">" : "<";
      const { rows } = await sql.query<Task>(
        `SELECT ${COLUMNS} FROM tasks
          WHERE factory_uid = $1 AND deleted_at IS NULL
            AND (cardinality($2::text[]) = 0 OR stage = ANY ($2))
            AND strpos(lower(title), lower($3)) > 0
            AND ($4::timestamptz IS NULL OR created_at > $4)
            AND ($5::timestamptz IS NULL OR created_at < $5)
            AND ($6::timestamptz IS NULL OR updated_at > $6)
            AND ($7::timestamptz IS NULL OR ${sortBy} <= $7)
            AND ($8::timestamptz IS NULL OR (${sortBy}, uid) ${beyond} ($8, $9::uuid))
            AND ($11::text[] IS NULL OR started_by_uid = ANY ($11))
          ORDER BY ${sortBy} ${sortOrder}, uid ${sortOrder} LIMIT $10`,
        [
          ...[
            query.factoryUid,
            query.stages,
            query.q,
            query.createdAfter ?? null,
            query.createdBefore ?? null,
            query.updatedAfter ?? null,
          ],
          ...[
            query.notAfter ?? null,
            query.after?.at ?? null,
            query.after?.uid ?? null,
            query.limit,
            query.starterUids ?? null,
          ],
        ],
      );
      return rows;
    },

    /** Returns the tasks of one stage of a team's factories, most recently changed first. */
    async listOfTeam({
      teamUid,
      stage,
      limit,
      notAfter,
      after,
    }: {
      teamUid: TeamUid;
      stage: TaskStage;
      limit: number;
      notAfter?: Date;
      after?: { at: Date; uid: string };
    }): Promise<Task[]> {
      const { rows } = await sql.query<Task>(
        `SELECT ${COLUMNS} FROM tasks t
          WHERE team_uid = $1 AND stage = $2 AND deleted_at IS NULL
            AND EXISTS (SELECT 1 FROM factories f WHERE f.uid = t.factory_uid AND f.deleted_at IS NULL)
            AND ($4::timestamptz IS NULL OR updated_at <= $4)
            AND ($5::timestamptz IS NULL OR (updated_at, uid) < ($5, $6::uuid))
          ORDER BY updated_at DESC, uid DESC
          LIMIT $3`,
        [teamUid, stage, limit, notAfter ?? null, after?.at ?? null, after?.uid ?? null],
      );
      return rows;
    },

    /** Locks the task, applies the change, and stores it unless nothing changed. Errors: task_not_found. */
    update: (
      factoryUid: FactoryUid,
      uid: TaskUid,
      change: (task: Task) => Task,
      eventOf: (task: Task, before: Task) => NewEvent,
    ): Promise<Task> =>
      database.transaction(async (tx) => {
        const task = await locked(tx, factoryUid, uid);
        return save(tx, task, change(task), eventOf);
      }),
  };
}

export type TaskStore = ReturnType<typeof taskStore>;

/** Locks and returns a task. Errors: task_not_found. */
async function locked(tx: Sql, factoryUid: FactoryUid, uid: TaskUid): Promise<Task> {
  const text = `SELECT ${COLUMNS} FROM tasks WHERE factory_uid = $1 AND uid = $2 AND deleted_at IS NULL FOR UPDATE`;
  const [task] = (await tx.query<Task>(text, [factoryUid, uid])).rows;
  if (!task) throw notFound("task");
  return task;
}

/** Returns whether the factory exists. If it does, it cannot be deleted until the transaction ends. */
export const lockFactoryForShare = async (tx: Sql, uid: FactoryUid): Promise<boolean> =>
  (await tx.query("SELECT 1 FROM factories WHERE uid = $1 AND deleted_at IS NULL FOR KEY SHARE", [uid])).rowCount > 0;

/** Inserts a task unless its conversation has a live task in any factory. Returns whether it was inserted. */
async function insertTask(tx: Sql, task: Task): Promise<boolean> {
  const { rowCount } = await tx.query(
    `INSERT INTO tasks (uid, factory_uid, team_uid, conversation_uid, run_uid, current_run_uid, started_by_uid, title, description, stage,
                        ticket_source, ticket_id, version, created_at, updated_at, stage_run_version)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
     ON CONFLICT (conversation_uid) WHERE deleted_at IS NULL DO NOTHING`,
    [
      ...[
        task.uid,
        task.factoryUid,
        task.teamUid,
        task.conversationUid,
        task.runUid,
        task.currentRunUid,
        task.startedByUid,
        task.title,
      ],
      ...[
        task.description,
        task.stage,
        task.ticketSource,
        task.ticketId,
        task.version,
        task.createdAt,
        task.updatedAt,
        task.stageRunVersion,
      ],
    ],
  );
  return rowCount > 0;
}

/** Inserts a task with its event, unless its conversation has a live task. */
export async function insertTaskIfFree(tx: Sql, task: Task, event: NewEvent): Promise<void> {
  if (await insertTask(tx, task)) await appendEvents(tx, [event]);
}

/** A top-level run of a team, the newest in its conversation. */
export type CurrentRun = {
  readonly teamUid: TeamUid;
  readonly conversationUid: ConversationUid;
  readonly runUid: RunUid;
};

/**
 * Sets the current runs of the live tasks with these conversations, if any. Of runs in one conversation the last is
 * set.
 */
export async function setCurrentRuns(tx: Sql, runs: readonly CurrentRun[]): Promise<void> {
  if (runs.length === 0) return;
  const newest = new Map(runs.map((run) => [`${run.teamUid} ${run.conversationUid}`, run]));
  await tx.query(
    `UPDATE tasks t SET current_run_uid = r.run_uid
       FROM jsonb_to_recordset($1::jsonb) AS r (team_uid uuid, conversation_uid uuid, run_uid uuid)
      WHERE t.team_uid = r.team_uid AND t.conversation_uid = r.conversation_uid AND t.deleted_at IS NULL`,
    [
      JSON.stringify(
        [...newest.values()].map((run) => ({
          team_uid: run.teamUid,
          conversation_uid: run.conversationUid,
          run_uid: run.runUid,
        })),
      ),
    ],
  );
}

/** Moves the live task whose current run was `from` to the conversation of the run's retry, with the event. */
export async function moveTask(
  tx: Sql,
  from: RunUid,
  { conversationUid, runUid, teamUid }: CurrentRun,
  now: Date,
  eventOf: (task: Task) => NewEvent,
): Promise<void> {
  const { rows } = await tx.query<Task>(
    `UPDATE tasks t SET conversation_uid = $3, current_run_uid = $4, version = version + 1, updated_at = $5
      WHERE current_run_uid = $1 AND team_uid = $2 AND deleted_at IS NULL
        AND NOT EXISTS (SELECT FROM tasks o WHERE o.conversation_uid = $3 AND o.deleted_at IS NULL)
     RETURNING ${COLUMNS}`,
    [from, teamUid, conversationUid, runUid, now],
  );
  await appendEvents(
    tx,
    rows.map((task) => eventOf(task)),
  );
}

/** Changes the live task whose current run is this run, if any, with the event. */
export async function updateTaskOfRun(
  tx: Sql,
  runUid: RunUid,
  change: (task: Task) => Task,
  eventOf: (task: Task, before: Task) => NewEvent,
): Promise<void> {
  const text = `SELECT ${COLUMNS} FROM tasks WHERE current_run_uid = $1 AND deleted_at IS NULL FOR UPDATE`;
  for (const task of (await tx.query<Task>(text, [runUid])).rows) await save(tx, task, change(task), eventOf);
}

/** Stores a locked task with its event, unless the change returned the task unchanged. */
async function save(tx: Sql, before: Task, next: Task, eventOf: (task: Task, before: Task) => NewEvent): Promise<Task> {
  if (next === before) return before;
  await tx.query(
    "UPDATE tasks SET title = $2, description = $3, stage = $4, version = $5, updated_at = $6, stage_run_version = $7 WHERE uid = $1",
    [...[next.uid, next.title, next.description, next.stage, next.version, next.updatedAt, next.stageRunVersion]],
  );
  await appendEvents(tx, [eventOf(next, before)]);
  return next;
}
