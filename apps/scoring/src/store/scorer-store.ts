import { isUniqueViolation, type Database, type Sql } from "@millwright/database";
import { DomainError, notFound } from "@millwright/errors";
import { appendEvents, type NewEvent } from "@millwright/events";
import type { IdempotentRequest } from "@millwright/idempotency";
import type { Scorer, ScorerUid } from "../domain/scorer.ts";
import type { SelfImprovementSettings } from "../domain/self-improvement.ts";
import { SCORER_COLUMNS, toScorer, type ScorerRow } from "./scorer-rows.ts";
import { CHANGED_COLUMNS, changedValues } from "./scorer-values.ts";
import { putSelfImprovement, syncSelfImprovement } from "./self-improvement-store.ts";
import { responses } from "./idempotency.ts";

export type NewScorer = Omit<Scorer, "id">;
export type ScorerChange = { readonly next: Scorer; readonly event: NewEvent };
/** Stored response of a request that created a scorer. */
export type CreatedScorer = { readonly uid: string; readonly id: number; readonly at: string };

/** Effects of deleting a scorer, in the same transaction. */
export type Deletion = {
  readonly event: (scorer: Scorer) => NewEvent;
  readonly cancel: (tx: Sql, judgeRun: { runUid: string; teamUid: string }) => Promise<void>;
};

/** Stores scorers of factories. `cancel` enqueues the cancellation of a deleted attempt's judge run. */
export function scorerStore(database: Database, cancel: Deletion["cancel"]) {
  return {
    find: async (uid: ScorerUid): Promise<Scorer | undefined> =>
      (await select(database.lookups, "s.uid = $1", [uid]))[0],

    /** Returns the scorers of a factory, ordered by name without case, ties by uid. */
    list: (factoryUid: string, { includeManaged }: { includeManaged: boolean }): Promise<Scorer[]> =>
      select(database.sql, `s.factory_uid = $1 AND ($2 OR s.kind = 'user') ORDER BY lower(s.name) COLLATE "C", s.uid`, [
        factoryUid,
        includeManaged,
      ]),

    /** Returns what an earlier request with the same idempotency key created. Errors: idempotency_mismatch. */
    findCreated: (request: IdempotentRequest, now: Date): Promise<CreatedScorer | undefined> =>
      responses.find<CreatedScorer>(database.sql, request, now),

    /**
     * Inserts a scorer with its event. A repeated request returns what the first one created. Errors: scorer_name_taken
     * · idempotency_mismatch.
     */
    create: (scorer: NewScorer, event: NewEvent, request: IdempotentRequest | undefined): Promise<CreatedScorer> =>
      withUniqueNames(
        database.transaction((tx) =>
          responses.once<CreatedScorer>(tx, request, scorer.createdAt, async () => {
            const id = await nextId(tx);
            await insertScorer(tx, { ...scorer, id });
            await appendEvents(tx, [event]);
            return { uid: scorer.uid, id, at: scorer.createdAt.toISOString() };
          }),
        ),
      ),

    /**
     * Locks a scorer, applies the change and saves it with its event and its self-improvement. Errors: scorer_not_found
     * · scorer_name_taken.
     */
    update: (uid: ScorerUid, change: (scorer: Scorer) => ScorerChange): Promise<Scorer> =>
      withUniqueNames(
        database.transaction(async (tx) => {
          const { next, event } = change(await lockScorer(tx, uid));
          await saveScorer(tx, next);
          await appendEvents(tx, [event]);
          return next;
        }),
      ),

    /**
     * Creates or replaces the self-improvement of a locked scorer, and saves a change of the scorer in the same
     * transaction. Errors: scorer_not_found.
     */
    putSelfImprovement: (
      uid: ScorerUid,
      settings: SelfImprovementSettings,
      now: Date,
      change: (scorer: Scorer) => ScorerChange | undefined,
    ): Promise<void> =>
      database.transaction(async (tx) => {
        const changed = change(await lockScorer(tx, uid));
        if (changed) {
          await saveScorer(tx, changed.next);
          await appendEvents(tx, [changed.event]);
        }
        await putSelfImprovement(tx, uid, settings, now);
      }),

    /** Deletes a scorer; see `deleteScorers`. Errors: scorer_not_found. */
    delete: (uid: ScorerUid, event: (scorer: Scorer) => NewEvent): Promise<void> =>
      database.transaction(async (tx) => deleteScorers(tx, [await lockScorer(tx, uid)], { event, cancel })),
  };
}

export type ScorerStore = ReturnType<typeof scorerStore>;

/** Inserts a scorer, with its self-improvement if it is enabled. */
export async function insertScorer(tx: Sql, scorer: Scorer): Promise<void> {
  await tx.query(
    `INSERT INTO scorers (uid, id, factory_uid, team_uid, slug, kind, creator_type, creator_uid, created_at, ${CHANGED_COLUMNS.join(", ")})
     OVERRIDING SYSTEM VALUE
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, ${CHANGED_COLUMNS.map((_, index) => `$${index + 10}`).join(", ")})`,
    [
      scorer.uid,
      scorer.id,
      scorer.factoryUid,
      scorer.teamUid,
      scorer.slug,
      scorer.kind,
      scorer.creator.type,
      scorer.creator.uid,
      scorer.createdAt,
      ...changedValues(scorer),
    ],
  );
  await syncSelfImprovement(tx, scorer);
}

/** Saves a changed scorer, and creates or deletes its self-improvement. */
export async function saveScorer(tx: Sql, scorer: Scorer): Promise<void> {
  const assignments = CHANGED_COLUMNS.map((column, index) => `${column} = $${index + 2}`).join(", ");
  await tx.query(`UPDATE scorers SET ${assignments} WHERE uid = $1`, [scorer.uid, ...changedValues(scorer)]);
  await syncSelfImprovement(tx, scorer);
}

/** Reserves and returns a legacy numeric id. */
export async function nextId(tx: Sql): Promise<number> {
  const { rows } = await tx.query<{ id: number }>("SELECT nextval(pg_get_serial_sequence('scorers', 'id')) AS id");
  return rows[0]!.id;
}

/**
 * Deletes locked scorers with all data that references them: attempts, scores, reasons, scores of trials,
 * self-improvement. Calls `cancel` for the judge runs of attempts in flight.
 */
export async function deleteScorers(tx: Sql, scorers: readonly Scorer[], { event, cancel }: Deletion): Promise<void> {
  if (scorers.length === 0) return;
  const uids = scorers.map(({ uid }) => uid);
  const { rows } = await tx.query<{ judge_run_uid: string; team_uid: string }>(
    `WITH deleted AS (DELETE FROM attempts WHERE scorer_uid = ANY ($1::uuid[]) RETURNING judge_run_uid, team_uid, state)
     SELECT judge_run_uid, team_uid FROM deleted WHERE state IN ('pending', 'judging') AND judge_run_uid IS NOT NULL`,
    [uids],
  );
  for (const { judge_run_uid: runUid, team_uid: teamUid } of rows) await cancel(tx, { runUid, teamUid });
  await tx.query("DELETE FROM scorers WHERE uid = ANY ($1::uuid[])", [uids]);
  await appendEvents(
    tx,
    scorers.map((scorer) => event({ ...scorer, version: scorer.version + 1 })),
  );
}

async function lockScorer(tx: Sql, uid: ScorerUid): Promise<Scorer> {
  const [scorer] = await select(tx, "s.uid = $1 FOR UPDATE", [uid]);
  if (!scorer) throw notFound("scorer");
  return scorer;
}

async function select(sql: Sql, where: string, params: readonly unknown[]): Promise<Scorer[]> {
  const { rows } = await sql.query<ScorerRow>(`SELECT ${SCORER_COLUMNS} FROM scorers s WHERE ${where}`, params);
  return rows.map(toScorer);
}

/**
 * Converts a unique violation to `scorer_name_taken`. Only names can conflict: uids are new, and a factory is locked
 * while its slugs change.
 */
const withUniqueNames = <T>(change: Promise<T>): Promise<T> =>
  change.catch((error: unknown) => {
    if (!isUniqueViolation(error)) throw error;
    throw new DomainError({
      kind: "conflict",
      reason: "scorer_name_taken",
      message: "The factory already has a scorer of this name; names are compared ignoring case. Choose another name.",
    });
  });
