import type { Sql } from "@millwright/database";
import type { Owner } from "../../runs/domain/run.ts";
import { RUNS_OF_CONVERSATION } from "../../runs/store/run-store.ts";

/** A conversation, limited to the runs of one owner. */
export type ConversationOfOwner = { readonly conversationUid: string; readonly owner: Owner };

export type BlockSnapshotRecord = { readonly blobKey: string; readonly extent: number };

/**
 * The newest runs of a conversation with their last seqs, oldest first, and the number of events of all its runs
 * (`extent`).
 */
export type ConversationExtent = {
  readonly runs: readonly { readonly uid: string; readonly lastSeq: number }[];
  readonly extent: number;
  readonly hasStarted: boolean;
};

const RUNS_MAX = 100;

/** Records which blob shows the commands of a conversation. */
export const blockSnapshotStore = {
  async find(sql: Sql, { conversationUid, owner }: ConversationOfOwner): Promise<BlockSnapshotRecord | undefined> {
    const { rows } = await sql.query<{ blob_key: string; extent: number }>(
      "SELECT blob_key, extent FROM block_snapshots WHERE conversation_uid = $1 AND owner_type = $2 AND owner_uid = $3",
      [conversationUid, owner.type, owner.uid],
    );
    return rows[0] && { blobKey: rows[0].blob_key, extent: rows[0].extent };
  },

  /**
   * Records the newest blob, unless the recorded one extends at least as far. Returns the key of the blob that is no
   * longer needed, if any.
   */
  async replace(
    tx: Sql,
    { conversationUid, owner }: ConversationOfOwner,
    { blobKey, extent }: BlockSnapshotRecord,
  ): Promise<string | undefined> {
    const of = [conversationUid, owner.type, owner.uid];
    const first = await tx.query(
      "INSERT INTO block_snapshots (conversation_uid, owner_type, owner_uid, blob_key, extent) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
      [...of, blobKey, extent],
    );
    if (first.rowCount === 1) return undefined;
    const which = "conversation_uid = $1 AND owner_type = $2 AND owner_uid = $3";
    const { rows } = await tx.query<{ blob_key: string; extent: number }>(
      `SELECT blob_key, extent FROM block_snapshots WHERE ${which} FOR UPDATE`,
      of,
    );
    const known = rows[0]!;
    if (known.blob_key === blobKey) return undefined;
    if (known.extent >= extent) return blobKey;
    await tx.query(`UPDATE block_snapshots SET blob_key = $4, extent = $5, written_at = now() WHERE ${which}`, [
      ...of,
      blobKey,
      extent,
    ]);
    return known.blob_key;
  },

  /** Returns the newest runs, the number of events of all runs, and whether a worker ever appended one. */
  async extent(sql: Sql, { conversationUid, owner }: ConversationOfOwner): Promise<ConversationExtent> {
    const { rows } = await sql.query<{ uid: string; last_seq: number; has_started: boolean }>(
      `SELECT r.uid, s.last_seq, EXISTS (SELECT 1 FROM stream.run_events e WHERE e.run_uid = r.uid AND e.attempt IS NOT NULL) AS has_started
         FROM ${RUNS_OF_CONVERSATION} r JOIN run_streams s ON s.run_uid = r.uid
        WHERE r.owner_type = $2 AND r.owner_uid = $3 ORDER BY r.created_at, r.uid`,
      [conversationUid, owner.type, owner.uid],
    );
    return {
      runs: rows.slice(-RUNS_MAX).map(({ uid, last_seq: lastSeq }) => ({ uid, lastSeq })),
      extent: rows.reduce((sum, { last_seq: lastSeq }) => sum + lastSeq, 0),
      hasStarted: rows.some((row) => row.has_started),
    };
  },

  /** Returns the conversation that a run serves for its owner. */
  async ofRun(sql: Sql, runUid: string): Promise<ConversationOfOwner | undefined> {
    const { rows } = await sql.query<{ conversation_uid: string; owner_type: Owner["type"]; owner_uid: string }>(
      "SELECT conversation_uid, owner_type, owner_uid FROM runs WHERE uid = $1",
      [runUid],
    );
    return (
      rows[0] && {
        conversationUid: rows[0].conversation_uid,
        owner: { type: rows[0].owner_type, uid: rows[0].owner_uid },
      }
    );
  },
};
