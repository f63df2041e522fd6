import type { Sql } from "@millwright/database";
import type { LockedRun } from "../domain/run-change.ts";
import { RUNS_OF_CONVERSATION } from "./run-store.ts";
import { snapshotStore } from "./snapshot-store.ts";

/**
 * Returns the workspace that an execution starts with: its own checkpoint, else the newest workspace that earlier
 * executions of its conversation with the same owner saved.
 */
export async function workspaceOf(
  sql: Sql,
  { conversationUid, owner }: Pick<LockedRun, "conversationUid" | "owner">,
  executionId: number,
): Promise<string | undefined> {
  const { rows } = await sql.query<{ key: string }>(
    `SELECT coalesce(x.snapshot_key, x.checkpoint_key) AS key FROM executions x JOIN ${RUNS_OF_CONVERSATION} r ON r.uid = x.run_uid
      WHERE r.owner_type = $2 AND r.owner_uid = $3 AND x.id <= $4 AND coalesce(x.snapshot_key, x.checkpoint_key) IS NOT NULL
      ORDER BY x.id DESC LIMIT 1`,
    [conversationUid, owner.type, owner.uid, executionId],
  );
  return rows[0]?.key;
}

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
