import type { Sql } from "@millwright/database";
import { isUuid } from "@millwright/ids";
import { TERMINAL_STATES } from "../domain/run.ts";
import { DELETE_BLOB } from "./blob-work.ts";

/**
 * A snapshot that no execution will begin with: its conversation has a newer one, or is over for so long that nobody waits for it. While a run
 * of the conversation is alive, the older ones may be what it begins with; a run of another conversation may have borrowed one. $1: made before; $2: kept at least until; $3: states of ended runs.
 */
const EXPIRED = `s.created_at < $1
  AND (s.created_at < $2 OR EXISTS (
    SELECT 1 FROM runs newer JOIN executions y ON y.run_uid = newer.uid
     WHERE newer.conversation_uid = r.conversation_uid AND newer.owner_type = r.owner_type AND newer.owner_uid = r.owner_uid
       AND y.id > x.id AND coalesce(y.snapshot_key, y.checkpoint_key) IS NOT NULL))
  AND NOT EXISTS (SELECT 1 FROM runs alive WHERE alive.conversation_uid = r.conversation_uid AND alive.state <> ALL ($3::text[]))
  AND NOT EXISTS (SELECT 1 FROM runs borrower WHERE borrower.frozen #>> '{workspace,snapshot_key}' = s.snapshot_key AND borrower.state <> ALL ($3::text[]))`;
const NAMED_SNAPSHOTS = `FROM snapshots s JOIN executions x ON x.id = s.execution_id AND s.snapshot_key IN (x.snapshot_key, x.checkpoint_key) JOIN runs r ON r.uid = s.run_uid`;
const UNNAMED =
  "s.created_at < $1 AND NOT EXISTS (SELECT 1 FROM executions x WHERE x.id = s.execution_id AND s.snapshot_key IN (x.snapshot_key, x.checkpoint_key))";

/**
 * What files of the blob store rows name, and how rows forget them. Each `drop` forgets at most `limit` and answers their keys. What may change
 * meanwhile is locked first and judged again in a second statement, which sees what the lock waited for.
 */
export const sweepStore = {
  /** Uploads announced before that time and never committed. */
  async dropUncommittedArtifacts(tx: Sql, before: Date, limit: number): Promise<string[]> {
    const { rows } = await tx.query<{ key: string | null }>(
      `DELETE FROM artifacts WHERE committed_at IS NULL AND uid IN
         (SELECT uid FROM artifacts WHERE committed_at IS NULL AND created_at < $1 ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
       RETURNING blob_key AS key`,
      [before, limit],
    );
    return rows.flatMap(({ key }) => (key === null ? [] : [key]));
  },

  /** Snapshots put before that time that no execution names: it has not ended with them, and they are not its newest checkpoint. */
  async dropUnnamedSnapshots(tx: Sql, before: Date, limit: number): Promise<string[]> {
    const locked = await keysOf(
      tx,
      `SELECT s.snapshot_key AS key FROM snapshots s WHERE ${UNNAMED} LIMIT $2 FOR UPDATE SKIP LOCKED`,
      [before, limit],
    );
    return keysOf(
      tx,
      `DELETE FROM snapshots s WHERE s.snapshot_key = ANY ($2) AND ${UNNAMED} RETURNING s.snapshot_key AS key`,
      [before, locked],
    );
  },

  /** Snapshots put before `before` that are superseded, or put before `keptSince`. Their runs are locked. */
  async dropExpiredSnapshots(
    tx: Sql,
    { before, keptSince }: { before: Date; keptSince: Date },
    limit: number,
  ): Promise<string[]> {
    const ended = [...TERMINAL_STATES];
    const ofLocked = await keysOf(
      tx,
      `SELECT s.snapshot_key AS key ${NAMED_SNAPSHOTS} WHERE ${EXPIRED} ORDER BY r.uid LIMIT $4 FOR UPDATE OF r SKIP LOCKED`,
      [before, keptSince, ended, limit],
    );
    const keys = await keysOf(
      tx,
      `SELECT s.snapshot_key AS key ${NAMED_SNAPSHOTS} WHERE s.snapshot_key = ANY ($4) AND ${EXPIRED}`,
      [before, keptSince, ended, ofLocked],
    );
    await tx.query(
      "UPDATE executions x SET snapshot_key = NULL, checkpoint_key = NULL FROM snapshots s WHERE s.snapshot_key = ANY ($1) AND x.id = s.execution_id",
      [keys],
    );
    return keysOf(tx, "DELETE FROM snapshots WHERE snapshot_key = ANY ($1) RETURNING snapshot_key AS key", [keys]);
  },

  /** Those of the keys that some row names, and those whose deletion is under way. */
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
