import type { Sql } from "@millwright/database";
import { enqueueBlobDeletion } from "../../storage/store/blob-work.ts";

export type Snapshot = {
  readonly key: string;
  readonly runUid: string;
  readonly executionId: number;
  readonly attempt: number;
  readonly sizeBytes: number;
};

/**
 * Records where executions stored their workspaces. The execution determines from which snapshot a run continues: its
 * checkpoint, or the snapshot with which it ended.
 */
export const snapshotStore = {
  async put(tx: Sql, { key, runUid, executionId, attempt, sizeBytes }: Snapshot): Promise<void> {
    await tx.query(
      `INSERT INTO snapshots (snapshot_key, run_uid, execution_id, attempt, size_bytes) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (snapshot_key) DO UPDATE SET size_bytes = excluded.size_bytes`,
      [key, runUid, executionId, attempt, sizeBytes],
    );
  },

  /**
   * Whether the key was issued to this execution; only then may its attempts refer to it. Locks the row against
   * deletion until the transaction ends.
   */
  async belongsTo(sql: Sql, key: string, executionId: number): Promise<boolean> {
    const { rowCount } = await sql.query(
      "SELECT 1 FROM snapshots WHERE snapshot_key = $1 AND execution_id = $2 FOR KEY SHARE",
      [key, executionId],
    );
    return rowCount === 1;
  },

  /** Returns the workspace that an ended execution of a run stored last. */
  async lastOf(sql: Sql, runUid: string): Promise<{ uid: string; key: string; executionId: number } | undefined> {
    const { rows } = await sql.query<{ uid: string; key: string; execution_id: number }>(
      `SELECT s.uid, s.snapshot_key AS key, x.id AS execution_id FROM executions x JOIN snapshots s ON s.snapshot_key = coalesce(x.snapshot_key, x.checkpoint_key)
        WHERE x.run_uid = $1 AND x.state = 'ENDED' ORDER BY x.id DESC LIMIT 1`,
      [runUid],
    );
    return rows[0] && { uid: rows[0].uid, key: rows[0].key, executionId: rows[0].execution_id };
  },

  /**
   * Deletes the other snapshots of this execution, which are no longer needed, and enqueues the deletion of their
   * blobs.
   */
  async deleteOthers(tx: Sql, key: string, executionId: number): Promise<void> {
    const text =
      "DELETE FROM snapshots WHERE execution_id = $1 AND snapshot_key <> $2 RETURNING snapshot_key AS old_key, now() AS now";
    const { rows } = await tx.query<{ old_key: string; now: Date }>(text, [executionId, key]);
    for (const { old_key: oldKey, now } of rows) await enqueueBlobDeletion(tx, oldKey, now);
  },
};

export type SnapshotStore = typeof snapshotStore;
