import type { Sql } from "@millwright/database";

/**
 * Returns the run of an attempt that owns its lease. Locks the lease, so that it cannot be revoked until the
 * transaction ends. Errors: lease_lost.
 */
export type RequireLease = (tx: Sql, executionId: number, attempt: number) => Promise<{ readonly runUid: string }>;
