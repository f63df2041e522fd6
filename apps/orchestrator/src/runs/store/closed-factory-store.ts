import type { Database, Sql } from "@millwright/database";
import { countLiveRuns } from "./run-store.ts";

/**
 * Returns the statement that locks a factory: shared to create runs, exclusive to close it. A transaction that closes
 * the factory sees every run, and one that creates a run sees every closing.
 */
const lock = (kind: "" | "_shared"): string =>
  `SELECT pg_advisory_xact_lock${kind}(hashtextextended('factory ' || $1::text, 0))::text`;

/** Blocks the closing of a factory until the transaction ends. Returns false if the factory is closed. */
export async function lockFactoryOpen(tx: Sql, factoryUid: string): Promise<boolean> {
  await tx.query(lock("_shared"), [factoryUid]);
  const { rowCount } = await tx.query("SELECT 1 FROM closed_factories WHERE factory_uid = $1", [factoryUid]);
  return rowCount === 0;
}

/**
 * Closes a factory permanently if it has no active run or `withLiveRuns` is true. Returns the number of its active
 * runs.
 */
export const closeFactory = (database: Database, factoryUid: string, withLiveRuns: boolean): Promise<number> =>
  database.transaction(async (tx) => {
    await tx.query(lock(""), [factoryUid]);
    const live = await countLiveRuns(tx, factoryUid);
    if (live === 0 || withLiveRuns)
      await tx.query("INSERT INTO closed_factories (factory_uid) VALUES ($1) ON CONFLICT DO NOTHING", [factoryUid]);
    return live;
  });
