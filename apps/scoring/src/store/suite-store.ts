import { isUniqueViolation, type Database, type Sql } from "@millwright/database";
import { DomainError, notFound } from "@millwright/errors";
import { appendEvents, type NewEvent } from "@millwright/events";
import type { IdempotentRequest } from "@millwright/idempotency";
import { suiteIdentity } from "../domain/suite-rules.ts";
import type { Suite, SuiteTask, SuiteUid, SuiteWithTasks } from "../domain/suite.ts";
import {
  SUITE_COLUMNS,
  SUITE_TASKS_COLUMN,
  taskJson,
  toSuite,
  toSuiteWithTasks,
  type SuiteRow,
  type SuiteWithTasksRow,
} from "./suite-rows.ts";
import { responses } from "./idempotency.ts";

export type SuiteChange = { readonly next: SuiteWithTasks; readonly event: NewEvent };
export type SuitePosition = { readonly createdAt: Date; readonly uid: string };
type ChangeSuite = (suite: SuiteWithTasks) => SuiteChange | undefined;
export type AddedTask = { readonly task: SuiteTask; readonly created: boolean };
export type CreatedSuite = {
  readonly suite: SuiteWithTasks;
  /** Agents that the suite's agent could delegate to. Absent in responses of the previous version, which had none. */
  readonly descendants?: readonly string[];
  readonly created: boolean;
};

/** Stores suites with their tasks. Deleted suites are hidden from every method. */
export function suiteStore(database: Database) {
  const changing = <T>(change: (tx: Sql) => Promise<T>): Promise<T> =>
    database.transaction(change).catch((error: unknown) => {
      throw isUniqueViolation(error) ? suiteNameTaken() : error;
    });
  return {
    async find(uid: SuiteUid): Promise<Suite | undefined> {
      const { rows } = await database.sql.query<SuiteRow>(
        `SELECT ${SUITE_COLUMNS} FROM suites s WHERE uid = $1 AND deleted_at IS NULL`,
        [uid],
      );
      return rows[0] && toSuite(rows[0]);
    },

    findWithTasks: (uid: SuiteUid): Promise<SuiteWithTasks | undefined> => findWithTasks(database.sql, uid),

    /** Returns a page of suites, newest first, ties ordered by uid. */
    async list(factoryUid: string, page: { after?: SuitePosition; limit: number }): Promise<Suite[]> {
      const { rows } = await database.sql.query<SuiteRow>(
        `SELECT ${SUITE_COLUMNS} FROM suites s
          WHERE factory_uid = $1 AND deleted_at IS NULL AND ($2::timestamptz IS NULL OR (created_at, uid) < ($2::timestamptz, $3::uuid))
          ORDER BY created_at DESC, uid DESC LIMIT $4`,
        [factoryUid, page.after?.createdAt ?? null, page.after?.uid ?? null, page.limit],
      );
      return rows.map(toSuite);
    },

    /** Returns what an earlier request with the same idempotency key created. Errors: idempotency_mismatch. */
    async findCreated(request: IdempotentRequest, now: Date): Promise<CreatedSuite | undefined> {
      const response = await responses.find<CreatedSuite>(database.sql, request, now);
      return response && { ...response, suite: revived(response.suite) };
    },

    /**
     * Inserts a suite with its tasks and its event. If a suite with this uid and the same content exists, it is
     * returned instead. A repeated request returns the first response.
     *
     * Errors: suite_exists (conflict) · suite_name_taken (conflict) · idempotency_mismatch.
     */
    create: (
      suite: SuiteWithTasks,
      descendants: readonly string[],
      event: NewEvent,
      request: IdempotentRequest | undefined,
    ): Promise<CreatedSuite> =>
      changing(async (tx) => {
        const response = await responses.once<CreatedSuite>(tx, request, suite.createdAt, async () => {
          await lockText(tx, suite.uid); // serialises concurrent creations with the same uid
          const created = await insertSuite(tx, suite);
          if (created) {
            await saveTasks(tx, suite.uid, [], suite.tasks);
            await appendEvents(tx, [event]);
          }
          const stored = await findWithTasks(tx, suite.uid);
          const isSame =
            stored !== undefined &&
            (created || suiteIdentity(stored, stored.tasks) === suiteIdentity(suite, suite.tasks));
          if (!isSame) throw suiteExists(suite.uid);
          return { suite: stored, descendants, created };
        });
        return { ...response, suite: revived(response.suite) };
      }),

    /**
     * Locks the suite, applies the change and saves it with its event. Without a change, nothing is written. Returns
     * the stored suite. Errors: suite_not_found · suite_name_taken, and those of `change`.
     */
    update: (uid: SuiteUid, change: ChangeSuite): Promise<SuiteWithTasks> => changing((tx) => update(tx, uid, change)),

    /** Returns the response to an earlier request that added a task. Errors: idempotency_mismatch. */
    findAddedTask: (request: IdempotentRequest, now: Date): Promise<AddedTask | undefined> =>
      responses.find<AddedTask>(database.sql, request, now),

    /**
     * As `update`, for a change that adds a task; `added` finds it in the stored suite. A repeated request returns the
     * first response. Errors: those of `update` · idempotency_mismatch.
     */
    addTask: (
      uid: SuiteUid,
      change: ChangeSuite,
      added: (suite: SuiteWithTasks) => AddedTask,
      request: IdempotentRequest | undefined,
      now: Date,
    ): Promise<AddedTask> =>
      changing((tx) => responses.once(tx, request, now, async () => added(await update(tx, uid, change)))),

    /** Hides the suite. Errors: suite_not_found. */
    delete: (uid: SuiteUid, now: Date, event: (suite: Suite) => NewEvent): Promise<void> =>
      changing(async (tx) => {
        const suite = await lockSuite(tx, uid);
        await hideSuites(tx, [suite], now, event);
      }),
  };
}

export type SuiteStore = ReturnType<typeof suiteStore>;

async function update(tx: Sql, uid: SuiteUid, change: ChangeSuite): Promise<SuiteWithTasks> {
  const before = await lockSuite(tx, uid);
  const changed = change(before);
  if (!changed) return before;
  await saveSuite(tx, changed.next);
  await saveTasks(tx, uid, before.tasks, changed.next.tasks);
  await appendEvents(tx, [changed.event]);
  return (await findWithTasks(tx, uid))!;
}

const lockText = async (tx: Sql, text: string): Promise<void> =>
  void (await tx.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [text]));

/** Returns a suite and its tasks, read by one statement so that they have the same version. */
async function findWithTasks(sql: Sql, uid: SuiteUid): Promise<SuiteWithTasks | undefined> {
  const { rows } = await sql.query<SuiteWithTasksRow>(
    `SELECT ${SUITE_COLUMNS}, ${SUITE_TASKS_COLUMN} FROM suites s WHERE uid = $1 AND deleted_at IS NULL`,
    [uid],
  );
  return rows[0] && toSuiteWithTasks(rows[0]);
}

/**
 * Returns a suite and its tasks, locked. The lock is a separate statement: a single statement that waited for the lock
 * would still see the tasks as they were before. Errors: suite_not_found.
 */
async function lockSuite(tx: Sql, uid: SuiteUid): Promise<SuiteWithTasks> {
  await tx.query("SELECT FROM suites WHERE uid = $1 FOR UPDATE", [uid]);
  const suite = await findWithTasks(tx, uid);
  if (!suite) throw notFound("suite");
  return suite;
}

/** Locks and returns the suites of a factory that are not deleted, ordered by uid. */
export async function lockSuitesOf(tx: Sql, factoryUid: string): Promise<SuiteWithTasks[]> {
  const { rows } = await tx.query<{ uid: SuiteUid }>(
    "SELECT uid FROM suites WHERE factory_uid = $1 AND deleted_at IS NULL ORDER BY uid FOR UPDATE",
    [factoryUid],
  );
  const suites = await Promise.all(rows.map(({ uid }) => findWithTasks(tx, uid)));
  return suites.flatMap((suite) => suite ?? []);
}

/** Hides locked suites. Their benchmark runs remain readable. */
export async function hideSuites(
  tx: Sql,
  suites: readonly Suite[],
  now: Date,
  event: (suite: Suite) => NewEvent,
): Promise<void> {
  await tx.query(
    "UPDATE suites SET deleted_at = $2, updated_at = $2, version = version + 1 WHERE uid = ANY ($1::uuid[])",
    [suites.map(({ uid }) => uid), now],
  );
  await appendEvents(
    tx,
    suites.map((suite) => event({ ...suite, version: suite.version + 1 })),
  );
}

/** Gives locked suites temporary names, so that suites of files can swap names. */
export async function clearSuiteNames(tx: Sql, uids: readonly string[]): Promise<void> {
  if (uids.length > 0) await tx.query("UPDATE suites SET name = uid::text WHERE uid = ANY ($1::uuid[])", [uids]);
}

/** Inserts a suite. Returns false if the uid exists. */
export async function insertSuite(tx: Sql, suite: Suite): Promise<boolean> {
  const { rowCount } = await tx.query(
    `INSERT INTO suites (uid, factory_uid, team_uid, slug, name, description, agent_uid, factory_agent_type, configurations, version, creator_type, creator_uid, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, $11, $12, $13, $14) ON CONFLICT (uid) DO NOTHING`,
    [
      suite.uid,
      suite.factoryUid,
      suite.teamUid,
      suite.slug,
      suite.name,
      suite.description,
      suite.agentUid,
      suite.factoryAgentType,
      JSON.stringify(suite.configurations),
      suite.version,
      suite.creator.type,
      suite.creator.uid,
      suite.createdAt,
      suite.updatedAt,
    ],
  );
  return rowCount === 1;
}

export async function saveSuite(tx: Sql, next: Suite): Promise<void> {
  await tx.query(
    `UPDATE suites SET name = $2, description = $3, agent_uid = $4, factory_agent_type = $5, configurations = $6::jsonb, version = $7, updated_at = $8, slug = $9 WHERE uid = $1`,
    [
      next.uid,
      next.name,
      next.description,
      next.agentUid,
      next.factoryAgentType,
      JSON.stringify(next.configurations),
      next.version,
      next.updatedAt,
      next.slug,
    ],
  );
}

/** Replaces the tasks of a suite by those of `next`, in the same order. */
export async function saveTasks(
  tx: Sql,
  suiteUid: SuiteUid,
  before: readonly SuiteTask[],
  next: readonly SuiteTask[],
): Promise<void> {
  const removed = before.filter(({ uid }) => !next.some((task) => task.uid === uid)).map(({ uid }) => uid);
  if (removed.length > 0)
    await tx.query("DELETE FROM suite_tasks WHERE suite_uid = $1 AND uid = ANY ($2::uuid[])", [suiteUid, removed]);
  const changed = next.flatMap((task, position) => (before[position] === task ? [] : [taskJson(task, position)]));
  if (changed.length > 0) await tx.query(UPSERT_TASKS, [suiteUid, JSON.stringify(changed)]);
}

/** One statement, so that tasks can swap titles. */
const UPSERT_TASKS = `
  INSERT INTO suite_tasks (uid, suite_uid, position, slug, title, prompt, success_criteria, source_run_uid, starting_repo_refs, tags, labels, rule, created_at, updated_at)
  SELECT uid, $1, position, slug, title, prompt, success_criteria, source_run_uid, starting_repo_refs, tags, labels, nullif(rule, 'null'::jsonb), now(), now()
    FROM jsonb_to_recordset($2::jsonb) AS t (uid uuid, position integer, slug text, title text, prompt text, success_criteria text, source_run_uid uuid,
           starting_repo_refs jsonb, tags jsonb, labels jsonb, rule jsonb)
   ORDER BY position
  ON CONFLICT (uid) DO UPDATE SET position = excluded.position, slug = excluded.slug, title = excluded.title, prompt = excluded.prompt,
    success_criteria = excluded.success_criteria, source_run_uid = excluded.source_run_uid, starting_repo_refs = excluded.starting_repo_refs,
    tags = excluded.tags, labels = excluded.labels, rule = excluded.rule, updated_at = excluded.updated_at`;

const revived = (suite: SuiteWithTasks): SuiteWithTasks => ({
  ...suite,
  createdAt: new Date(suite.createdAt),
  updatedAt: new Date(suite.updatedAt),
});

const suiteNameTaken = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "suite_name_taken",
    message: "The factory already has a suite of this name; names are compared ignoring case. Choose another name.",
  });

const suiteExists = (uid: string): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "suite_exists",
    message: `The uid ${uid} is taken by a suite with other content; choose another uid.`,
    metadata: { uid },
  });
