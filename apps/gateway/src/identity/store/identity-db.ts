import { PrismaPg } from "@prisma/adapter-pg";
import { PRISMA_TRANSACTION, prismaSql, retryConflicts, type Database, type Sql } from "@millwright/database";
import { EVENTS_APPENDED } from "@millwright/events";
import { PrismaClient, type Prisma } from "../../gen/prisma/client.ts";

/** A connection or transaction: the generated client, and SQL on the same connection where that is clearer. */
export type Tx = { readonly prisma: Prisma.TransactionClient; readonly sql: Sql };

/** The gateway's database. Prisma uses the service's connection pool. */
export class IdentityDb {
  readonly database: Database;
  /** Executes each statement in a transaction of its own. */
  readonly now: Tx;
  /** The same, for short reads by key. */
  readonly lookups: Tx;
  readonly #prisma: PrismaClient;

  constructor(database: Database) {
    this.database = database;
    this.#prisma = new PrismaClient({ adapter: new PrismaPg(database.pool), transactionOptions: PRISMA_TRANSACTION });
    this.now = { prisma: this.#prisma, sql: database.sql };
    this.lookups = { prisma: this.#prisma, sql: database.lookups };
  }

  /**
   * Runs `f` in one transaction and retries it after a deadlock. Events that it appended are announced after the
   * commit. `f` must not make remote calls.
   */
  async transaction<T>(f: (tx: Tx) => Promise<T>): Promise<T> {
    const result = await retryConflicts(() =>
      this.#prisma.$transaction((prisma) => f({ prisma, sql: prismaSql(prisma) })),
    );
    this.database.sql.announce?.(EVENTS_APPENDED);
    return result;
  }
}
