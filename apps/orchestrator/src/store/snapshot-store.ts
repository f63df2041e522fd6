import type { Sql } from "@millwright/database";

export type Snapshot = { readonly key: string; readonly runUid: string; readonly executionId: number; readonly attempt: number; readonly sizeBytes: number };

/** Where executions put their workspaces. Which one a run goes on from is said by the execution that ended with it. */
export const snapshotStore = {
  async put(tx: Sql, { key, runUid, executionId, attempt, sizeBytes }: Snapshot): Promise<void> {
    await tx.query(
      `INSERT INTO snapshots (snapshot_key, run_uid, execution_id, attempt, size_bytes) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (snapshot_key) DO UPDATE SET size_bytes = excluded.size_bytes`,
      [key, runUid, executionId, attempt, sizeBytes],
    );
  },

  /** Whether this attempt was given the key: only then may it name it when it ends. The row stays until the transaction ends. */
  async belongsTo(sql: Sql, key: string, executionId: number, attempt: number): Promise<boolean> {
    const { rowCount } = await sql.query("SELECT 1 FROM snapshots WHERE snapshot_key = $1 AND execution_id = $2 AND attempt = $3 FOR KEY SHARE", [key, executionId, attempt]);
    return rowCount === 1;
  },
};

export type SnapshotStore = typeof snapshotStore;
