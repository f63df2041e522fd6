import type { Sql } from "@millwright/database";

/**
 * Locks factories until the transaction ends, always in the same order. A transaction acquires these locks before it
 * reads or writes facts, shares or pull requests of a factory, so that what it computes is made of everything that was
 * committed before.
 */
export async function lockFactories(tx: Sql, factoryUids: readonly string[]): Promise<void> {
  if (factoryUids.length === 0) return;
  await tx.query(
    `SELECT pg_advisory_xact_lock(hashtextextended('factory ' || uid, 0))::text
       FROM (SELECT DISTINCT uid::text FROM unnest($1::uuid[]) AS uid ORDER BY 1) factories`,
    [factoryUids],
  );
}
