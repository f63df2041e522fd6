import type { Sql } from "@millwright/database";
import { isUuid } from "@millwright/ids";
import { TERMINAL_STATES } from "../../runs/domain/run.ts";
import { DELETE_BLOB } from "../../storage/store/blob-work.ts";

/**
 * A snapshot with which no execution will begin: its conversation has a newer one, or it is older than the retention
 * time. A snapshot is retained while a run of its conversation is active, because that run may begin with an older one,
 * and while an active run of another conversation has borrowed it. $1: created before; $2: if created before, expired
 * even if it is the newest; $3: terminal states.
 */
const EXPIRED = `s.created_at < $1
  AND (s.created_at < $2 OR EXISTS (
    SELECT 1 FROM runs newer JOIN executions y ON y.run_uid = newer.uid
     WHERE newer.conversation_uid = r.conversation_uid AND newer.owner_type = r.owner_type AND newer.owner_uid = r.owner_uid
       AND y.id > x.id AND coalesce(y.snapshot_key, y.checkpoint_key) IS NOT NULL))
  AND NOT EXISTS (SELECT 1 FROM runs alive WHERE alive.conversation_uid = r.conversation_uid AND alive.state <> ALL ($3::text[]))
  AND NOT EXISTS (SELECT 1 FROM runs borrower WHERE borrower.frozen #>> '{workspace,snapshot_key}' = s.snapshot_key AND borrower.state <> ALL ($3::text[]))`;
const REFERENCED_SNAPSHOTS = `FROM snapshots s JOIN executions x ON x.id = s.execution_id AND s.snapshot_key IN (x.snapshot_key, x.checkpoint_key) JOIN runs r ON r.uid = s.run_uid`;
const UNREFERENCED =
  "s.created_at < $1 AND NOT EXISTS (SELECT 1 FROM executions x WHERE x.id = s.execution_id AND s.snapshot_key IN (x.snapshot_key, x.checkpoint_key))";

/**
 * Reads and deletes the rows that refer to blobs. Each `drop` deletes at most `limit` rows and returns their blob keys.
 * Rows that may change concurrently are locked first and checked again in a second statement, which sees what was
 * committed before the lock was acquired.
 */
export const sweepStore = {
  /** Deletes uploads that were announced before that time and never committed. */
  async dropUncommittedArtifacts(tx: Sql, before: Date, limit: number): Promise<string[]> {
    const { rows } = await tx.query<{ key: string | null }>(
      `DELETE FROM artifacts WHERE committed_at IS NULL AND uid IN
         (SELECT uid FROM artifacts WHERE committed_at IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
       RETURNING blob_key AS key`,
      [before, limit],
    );
    return rows.flatMap(({ key }) => (key === null ? [] : [key]));
  },

  /**
   * Deletes snapshots stored before that time to which no execution refers, neither as its final snapshot nor as its
   * newest checkpoint.
   */
  async dropUnreferencedSnapshots(tx: Sql, before: Date, limit: number): Promise<string[]> {
    const locked = await keysOf(
      tx,
      `SELECT s.snapshot_key AS key FROM snapshots s WHERE ${UNREFERENCED} LIMIT $2 FOR UPDATE SKIP LOCKED`,
      [before, limit],
    );
    return keysOf(
      tx,
      `DELETE FROM snapshots s WHERE s.snapshot_key = ANY ($2) AND ${UNREFERENCED} RETURNING s.snapshot_key AS key`,
      [before, locked],
    );
  },

  /** Deletes snapshots stored before `before` that are superseded, or stored before `retainedSince`. Locks their runs. */
  async dropExpiredSnapshots(
    tx: Sql,
    { before, retainedSince }: { before: Date; retainedSince: Date },
    limit: number,
  ): Promise<string[]> {
    const ended = [...TERMINAL_STATES];
    const ofLocked = await keysOf(
      tx,
      `SELECT s.snapshot_key AS key ${REFERENCED_SNAPSHOTS} WHERE ${EXPIRED} ORDER BY r.uid LIMIT $4 FOR UPDATE OF r SKIP LOCKED`,
      [before, retainedSince, ended, limit],
    );
    const keys = await keysOf(
      tx,
      `SELECT s.snapshot_key AS key ${REFERENCED_SNAPSHOTS} WHERE s.snapshot_key = ANY ($4) AND ${EXPIRED}`,
      [before, retainedSince, ended, ofLocked],
    );
    await tx.query(
      "UPDATE executions x SET snapshot_key = NULL, checkpoint_key = NULL FROM snapshots s WHERE s.snapshot_key = ANY ($1) AND x.id = s.execution_id",
      [keys],
    );
    return keysOf(tx, "DELETE FROM snapshots WHERE snapshot_key = ANY ($1) RETURNING snapshot_key AS key", [keys]);
  },

  /** Returns those of the keys to which a row refers or whose deletion is pending. */
  async known(sql: Sql, keys: readonly string[]): Promise<Set<string>> {
    const uids = [...new Set(keys.map((key) => key.split("/")[1] ?? "").filter(isUuid))];
    const found = await keysOf(
      sql,
      `SELECT blob_key AS key FROM artifacts WHERE run_uid = ANY ($1::uuid[]) AND blob_key IS NOT NULL
       UNION ALL SELECT 'attachments/' || uid FROM message_attachments WHERE uid = ANY ($1::uuid[])
       UNION ALL SELECT snapshot_key FROM snapshots WHERE run_uid = ANY ($1::uuid[])
       UNION ALL SELECT blob_key FROM transcripts WHERE run_uid = ANY ($1::uuid[])
       UNION ALL SELECT blob_key FROM harness_transcripts WHERE run_uid = ANY ($1::uuid[])
       UNION ALL SELECT blob_key FROM block_snapshots WHERE conversation_uid = ANY ($1::uuid[])
       UNION ALL SELECT key FROM stream.work_items WHERE kind = '${DELETE_BLOB}' AND state <> 'done' AND key = ANY ($2::text[])`,
      [uids, keys],
    );
    return new Set(found);
  },
};

const keysOf = async (sql: Sql, text: string, values: unknown[]): Promise<string[]> =>
  (await sql.query<{ key: string }>(text, values)).rows.map(({ key }) => key);
