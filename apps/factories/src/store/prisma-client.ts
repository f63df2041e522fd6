import { PrismaPg } from "@prisma/adapter-pg";
import { PRISMA_TRANSACTION, prismaSql, retryConflicts, type Database, type Sql } from "@millwright/database";
import { PrismaClient, type Prisma } from "../gen/prisma/client.ts";

/** The generated client on the service's own pool: Prisma opens no connections beside it. */
export const openPrisma = (database: Database): PrismaClient =>
  new PrismaClient({ adapter: new PrismaPg(database.pool), transactionOptions: PRISMA_TRANSACTION });

export type PrismaTx = Prisma.TransactionClient;

/** Transactions that change an aggregate and tell of it. */
export type Changes = {
  /** Runs `f` with the client, and the same transaction as `Sql` for events and work; again after a deadlock. Rings their loops after the commit. */
  change<T>(f: (tx: PrismaTx, sql: Sql) => Promise<T>): Promise<T>;
};

/** `wake` is called after events or work were committed; Prisma cannot notify about it. */
export const changesOf = (prisma: PrismaClient, wake: () => void): Changes => ({
  async change(f) {
    const result = await retryConflicts(() => prisma.$transaction((tx) => f(tx, prismaSql(tx))));
    wake();
    return result;
  },
});

/** Domain values are plain JSON already; Prisma's own type for that asks for index signatures. */
export const json = (value: unknown): Prisma.InputJsonValue => value as Prisma.InputJsonValue;
