import { isUniqueViolation, type Sql } from "@millwright/database";
import { notFound } from "@millwright/errors";
import { appendEvents, type NewEvent } from "@millwright/events";
import type { IdempotentRequest } from "@millwright/idempotency";
import { as, type FactoryUid, type TeamUid } from "@millwright/ids";
import { aliasTaken, type Factory } from "../domain/factory.ts";
import type { PrismaClient } from "../gen/prisma/client.ts";
import { deleteAutomationsOf } from "./automation-store.ts";
import { toChangeData, toFactory, toSettingsData } from "./factory-rows.ts";
import type { Changes, PrismaTx } from "./prisma-client.ts";
import { responses } from "./idempotency.ts";

export type ListQuery = {
  teams: readonly TeamUid[];
  only?: string;
  search: string;
  after?: { nameKey: string; uid: string };
  limit: number;
};

/** Returns the queries of factories. Deleted factories are hidden from every method. */
export function factoryStore(prisma: PrismaClient, changes: Changes, sql: Sql) {
  return {
    async find(uid: FactoryUid): Promise<Factory | undefined> {
      const row = await prisma.factory.findFirst({ where: { uid, deletedAt: null } });
      return row ? toFactory(row) : undefined;
    },

    async findByAlias(teamUid: string, alias: string): Promise<FactoryUid | undefined> {
      const query = "SELECT uid FROM factories WHERE team_uid = $1 AND lower(alias) = lower($2) AND deleted_at IS NULL";
      const { rows } = await sql.query<{ uid: string }>(query, [teamUid, alias]);
      return rows[0] && as<FactoryUid>(rows[0].uid);
    },

    /**
     * Lists factories by name (case-insensitive), then uid, each with its position. It uses SQL, because the order is by
     * an expression and the database computes the position.
     */
    async list({
      teams,
      only,
      search,
      after,
      limit,
    }: ListQuery): Promise<{ factory: Factory; at: { nameKey: string; uid: string } }[]> {
      const { rows } = await sql.query<{ uid: string; name_key: string }>(
        `SELECT uid, lower(name) AS name_key FROM factories
          WHERE team_uid = ANY ($1::uuid[]) AND deleted_at IS NULL
            AND ($2::uuid IS NULL OR uid = $2)
            AND (strpos(lower(name), lower($3)) > 0 OR strpos(lower(alias), lower($3)) > 0)
            AND ($4::text IS NULL OR (lower(name) COLLATE "C", uid) > ($4 COLLATE "C", $5::uuid))
          ORDER BY lower(name) COLLATE "C", uid LIMIT $6`,
        [teams, only ?? null, search, after?.nameKey ?? null, after?.uid ?? null, limit],
      );
      const found = await prisma.factory.findMany({
        where: { uid: { in: rows.map(({ uid }) => uid) }, deletedAt: null },
      });
      const byUid = new Map(found.map((row) => [row.uid, toFactory(row)]));
      return rows.flatMap(({ uid, name_key: nameKey }) => {
        const factory = byUid.get(uid);
        return factory ? [{ factory, at: { nameKey, uid } }] : [];
      });
    },

    /**
     * Inserts a factory with its event. A repeated request returns the factory as it was created.
     * Errors: alias_taken · idempotency_mismatch.
     */
    create: (factory: Factory, event: NewEvent, request: IdempotentRequest | undefined): Promise<Factory> =>
      orAliasTaken(
        changes.change(async (tx, inTx) => {
          const { uid, teamUid, creatorUid, createdAt } = factory;
          const created = await responses.once(inTx, request, createdAt, async () => {
            await tx.factory.create({
              data: { ...toChangeData(factory), ...toSettingsData(factory), uid, teamUid, creatorUid, createdAt },
            });
            await appendEvents(inTx, [event]);
            return factory;
          });
          return revive(created);
        }),
      ),

    /**
     * Locks the factory, applies the change, and stores it with its event unless nothing changed.
     * Errors: factory_not_found · alias_taken.
     */
    update: (
      uid: FactoryUid,
      change: (factory: Factory) => { next: Factory; event: NewEvent } | undefined,
    ): Promise<Factory> =>
      orAliasTaken(
        changes.change(async (tx, inTx) => {
          const factory = await lockFactory(tx, uid);
          const changed = change(factory);
          if (!changed) return factory;
          await tx.factory.update({ where: { uid }, data: toChangeData(changed.next) });
          await appendEvents(inTx, [changed.event]);
          return changed.next;
        }),
      ),

    /** Marks the factory and its tasks as deleted, which releases their conversations. Errors: factory_not_found. */
    delete: (factory: Factory, event: NewEvent, now: Date): Promise<void> =>
      changes.change(async (tx, inTx) => {
        const { uid, version } = await lockFactory(tx, factory.uid);
        await tx.factory.update({ where: { uid }, data: { deletedAt: now, updatedAt: now, version: version + 1 } });
        await tx.task.updateMany({
          where: { factoryUid: uid, deletedAt: null },
          data: { deletedAt: now, updatedAt: now },
        });
        await deleteAutomationsOf(inTx, uid, now);
        await appendEvents(inTx, [{ ...event, entityVersion: version + 1 }]);
      }),
  };
}

export type FactoryStore = ReturnType<typeof factoryStore>;

/**
 * Locks the source, if any, until the transaction ends. Returns the token of the running apply. To avoid deadlocks, the
 * source is locked before the factory.
 */
export async function lockSource(tx: PrismaTx, uid: FactoryUid): Promise<string | null> {
  const rows = await tx.$queryRaw<
    { token: string | null }[]
  >`SELECT apply_lease_uid AS token FROM definition_sources WHERE factory_uid = ${uid}::uuid FOR UPDATE`;
  return rows[0]?.token ?? null;
}

/** Locks and returns the factory. Errors: factory_not_found. */
export async function lockFactory(tx: PrismaTx, uid: FactoryUid): Promise<Factory> {
  await tx.$queryRaw`SELECT 1 FROM factories WHERE uid = ${uid}::uuid FOR UPDATE`;
  const row = await tx.factory.findFirst({ where: { uid, deletedAt: null } });
  if (!row) throw notFound("factory");
  return toFactory(row);
}

/**
 * Replaces a unique violation by the error alias_taken: apart from the primary key, the index of aliases is the only
 * unique index of factories.
 */
export const orAliasTaken = <T>(change: Promise<T>): Promise<T> =>
  change.catch((error: unknown) => {
    throw isUniqueViolation(error) ? aliasTaken(error) : error;
  });

/** Returns a factory with the times that a stored response contains as text. */
const revive = (factory: Factory): Factory => ({
  ...factory,
  createdAt: new Date(factory.createdAt),
  updatedAt: new Date(factory.updatedAt),
});
