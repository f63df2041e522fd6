import type { Sql } from "@millwright/database";
import { countLiveRuns } from "./run-store.ts";

/** Shared by the creation of runs, exclusive to closing: whoever closes sees every run, whoever creates sees every closing. */
const lock = (kind: "" | "_shared"): string =>
  `SELECT pg_advisory_xact_lock${kind}(hashtextextended('factory ' || $1::text, 0))::text`;

/** Keeps a factory from being closed until the transaction ends. False: it is closed. */
export async function holdFactoryOpen(tx: Sql, factoryUid: string): Promise<boolean> {
  await tx.query(lock("_shared"), [factoryUid]);
  const { rowCount } = await tx.query("SELECT 1 FROM closed_factories WHERE factory_uid = $1", [factoryUid]);
  return rowCount === 0;
}

/** Closes a factory for good, if it has no live run or may be closed with them. Answers how many it has. */
export async function closeFactory(tx: Sql, factoryUid: string, withLiveRuns: boolean): Promise<number> {
  await tx.query(lock(""), [factoryUid]);
  const live = await countLiveRuns(tx, factoryUid);
  if (live === 0 || withLiveRuns)
    await tx.query("INSERT INTO closed_factories (factory_uid) VALUES ($1) ON CONFLICT DO NOTHING", [factoryUid]);
  return live;
}
