import { PrismaPg } from "@prisma/adapter-pg";
import { PRISMA_TRANSACTION, prismaSql, retryConflicts, type Database } from "@millwright/database";
import type { OnceRequest } from "../domain/run-transaction.ts";
import { PrismaClient, type Prisma } from "../gen/prisma/client.ts";
import { once } from "./idempotency-store.ts";

/** The generated client on the service's own pool: Prisma opens no connections beside it. */
export const openPrisma = (database: Database): PrismaClient =>
  new PrismaClient({ adapter: new PrismaPg(database.pool), transactionOptions: PRISMA_TRANSACTION });

/** Creates a row once per key, in one transaction with the key; a repetition gets the row as it was made, its times as texts. */
export const createOnce = <T>(
  prisma: PrismaClient,
  request: OnceRequest,
  create: (tx: Prisma.TransactionClient) => Promise<T>,
): Promise<T> => retryConflicts(() => prisma.$transaction((tx) => once(prismaSql(tx), request, () => create(tx))));
