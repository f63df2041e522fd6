import type { Sql } from "@millwright/database";
import { snapshotStore } from "./snapshot-store.ts";

/** Returns whether a snapshot key was issued to an execution. */
export const ownsSnapshot = (sql: Sql, key: string, executionId: number): Promise<boolean> =>
  snapshotStore.belongsTo(sql, key, executionId);

/** Returns whether a run's snapshot is still stored. */
export async function isSnapshotStored(sql: Sql, key: string): Promise<boolean> {
  return (await sql.query("SELECT 1 FROM snapshots WHERE snapshot_key = $1", [key])).rowCount === 1;
}

/** Records the execution's newest workspace between steps, and deletes its older snapshots. */
export async function setCheckpoint(tx: Sql, executionId: number, key: string): Promise<void> {
  await tx.query("UPDATE executions SET checkpoint_key = $2 WHERE id = $1", [executionId, key]);
  await snapshotStore.deleteOthers(tx, key, executionId);
}

/** Deletes all snapshots of an execution except this one. */
export async function deleteOtherSnapshots(tx: Sql, executionId: number, key: string): Promise<void> {
  await tx.query("UPDATE executions SET checkpoint_key = NULL WHERE id = $1 AND checkpoint_key <> $2", [
    executionId,
    key,
  ]);
  await snapshotStore.deleteOthers(tx, key, executionId);
}
