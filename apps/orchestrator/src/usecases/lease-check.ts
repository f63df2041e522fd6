import type { Sql } from "@millwright/database";

/**
 * Whether an attempt still holds its lease; locks the lease against being taken away until the transaction ends.
 * Errors: lease_lost.
 */
export type RequireLease = (tx: Sql, executionId: number, attempt: number) => Promise<{ readonly runUid: string }>;

/** A transaction on the service's database. */
export type Transaction = <T>(f: (tx: Sql) => Promise<T>) => Promise<T>;
