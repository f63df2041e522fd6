/** The interface that shared tables (events, work) need from a database; implemented for `pg` and for Prisma. */
export interface Sql {
  /**
   * Runs one statement with positional parameters (`$1`). Objects are sent as JSON; arrays as PostgreSQL arrays, so a
   * JSON array must be passed as text and cast. Reads `int8` as number, `timestamptz` as Date, `jsonb` as object.
   */
  query<R = Record<string, unknown>>(text: string, params?: readonly unknown[]): Promise<SqlResult<R>>;
  /**
   * Sends a statement of a transaction without waiting for its result. Its failure, or a row count other than the
   * expected one, fails the transaction. Statements reach the server in call order and are pipelined. Absent outside of
   * our own transactions.
   */
  send?(text: string, params?: readonly unknown[], rowsExpected?: number): void;
  /**
   * Announces a topic to the listeners of `Database.onCommit` after the commit. Absent if Prisma owns the transaction:
   * listeners also poll.
   */
  announce?(topic: string): void;
}

export type SqlResult<R> = { rows: R[]; rowCount: number };

/** Runs a statement whose result is not needed, without waiting for it where possible. */
export async function sendTo(sql: Sql, text: string, params: readonly unknown[], rowsExpected?: number): Promise<void> {
  if (sql.send) sql.send(text, params, rowsExpected);
  else checkCount(await sql.query(text, params), rowsExpected);
}

/** Thrown if a statement affected another number of rows than expected. */
export function checkCount({ rowCount }: { rowCount: number }, expected: number | undefined): void {
  if (expected !== undefined && rowCount !== expected)
    throw new Error(`A statement touched ${rowCount} rows instead of ${expected}.`);
}

/** The methods that `prismaSql` needs from a Prisma client or interactive transaction. */
export type PrismaRaw = {
  $queryRawUnsafe<T>(text: string, ...params: unknown[]): PromiseLike<T>;
  $executeRawUnsafe(text: string, ...params: unknown[]): PromiseLike<number>;
};

const ANSWERS_ROWS = /^\s*(select|with|values|show)\b|\breturning\b/i;

/** Adapts a Prisma transaction to `Sql`. */
export function prismaSql(tx: PrismaRaw): Sql {
  return {
    async query<R>(text: string, params: readonly unknown[] = []): Promise<SqlResult<R>> {
      if (!ANSWERS_ROWS.test(text)) return { rows: [], rowCount: await tx.$executeRawUnsafe(text, ...params) };
      const rows = await tx.$queryRawUnsafe<Record<string, unknown>[]>(text, ...params);
      return { rows: rows.map(withPlainNumbers) as R[], rowCount: rows.length };
    },
  };
}

function withPlainNumbers(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === "bigint" ? safeNumber(value.toString()) : value,
    ]),
  );
}

/** Parses an `int8` as a JS number; throws rather than lose digits. */
export function safeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new RangeError("An int8 value is beyond the safe integers; select it as text.");
  return value;
}
