import { PrismaPg } from "@prisma/adapter-pg";
import { PRISMA_TRANSACTION, prismaSql, retryConflicts, type Database } from "@millwright/database";
import type { OnceRequest } from "../domain/once-request.ts";
import { PrismaClient, type Prisma } from "../../gen/prisma/client.ts";
import { once } from "./idempotency-store.ts";

/** Opens the generated client on the service's own pool; Prisma opens no further connections. */
export const openPrisma = (database: Database): PrismaClient =>
  new PrismaClient({ adapter: new PrismaPg(database.pool), transactionOptions: PRISMA_TRANSACTION });

/**
 * Creates a row once per key, in one transaction with the key. A repeated request returns the row as it was created,
 * with its times as strings.
 */
export const createOnce = <T>(
  prisma: PrismaClient,
  request: OnceRequest,
  create: (tx: Prisma.TransactionClient) => Promise<T>,
): Promise<T> => retryConflicts(() => prisma.$transaction((tx) => once(prismaSql(tx), request, () => create(tx))));
