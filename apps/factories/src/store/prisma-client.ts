import { PrismaPg } from "@prisma/adapter-pg";
import { PRISMA_TRANSACTION, prismaSql, retryConflicts, type Database, type Sql } from "@millwright/database";
import { PrismaClient, type Prisma } from "../gen/prisma/client.ts";

/** Opens the generated client on the service's own pool, so that Prisma opens no other connections. */
export const openPrisma = (database: Database): PrismaClient =>
  new PrismaClient({ adapter: new PrismaPg(database.pool), transactionOptions: PRISMA_TRANSACTION });

export type PrismaTx = Prisma.TransactionClient;

/** Transactions that change an aggregate and publish its events. */
export type Changes = {
  /**
   * Runs `f` with the Prisma client and the same transaction as `Sql` for events and work. Retries after a deadlock.
   * Wakes the loops that process events and work after the commit.
   */
  change<T>(f: (tx: PrismaTx, sql: Sql) => Promise<T>): Promise<T>;
};

/**
 * Returns the transaction runner. It calls `wake` after events or work were committed, because Prisma cannot send
 * notifications.
 */
export const changesOf = (prisma: PrismaClient, wake: () => void): Changes => ({
  async change(f) {
    const result = await retryConflicts(() => prisma.$transaction((tx) => f(tx, prismaSql(tx))));
    wake();
    return result;
  },
});

/** Casts plain JSON: Prisma's JSON type requires index signatures. */
export const json = (value: unknown): Prisma.InputJsonValue => value as Prisma.InputJsonValue;
