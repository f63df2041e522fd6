import type { Sql } from "@millwright/database";

export type TranscriptRecord = { readonly blobKey: string; readonly lastSeq: number };

/** Records which blob is the newest transcript of a run. */
export const transcriptStore = {
  async find(sql: Sql, runUid: string): Promise<TranscriptRecord | undefined> {
    const { rows } = await sql.query<{ blob_key: string; last_seq: number }>(
      "SELECT blob_key, last_seq FROM transcripts WHERE run_uid = $1",
      [runUid],
    );
    return rows[0] && { blobKey: rows[0].blob_key, lastSeq: rows[0].last_seq };
  },

  /**
   * Records the newest blob, unless the recorded one extends at least as far. Returns the key of the blob that is no
   * longer needed, if any.
   */
  async replace(tx: Sql, runUid: string, { blobKey, lastSeq }: TranscriptRecord): Promise<string | undefined> {
    const row = [runUid, blobKey, lastSeq];
    const first = await tx.query(
      "INSERT INTO transcripts (run_uid, blob_key, last_seq) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
      row,
    );
    if (first.rowCount === 1) return undefined;
    const { rows } = await tx.query<{ blob_key: string; last_seq: number }>(
      "SELECT blob_key, last_seq FROM transcripts WHERE run_uid = $1 FOR UPDATE",
      [runUid],
    );
    const known = rows[0]!;
    if (known.blob_key === blobKey) return undefined;
    if (known.last_seq >= lastSeq) return blobKey;
    await tx.query("UPDATE transcripts SET blob_key = $2, last_seq = $3, written_at = now() WHERE run_uid = $1", row);
    return known.blob_key;
  },

  /** Returns the newest event of a run, and whether a worker ever appended one. */
  async extent(sql: Sql, runUid: string): Promise<{ lastSeq: number; hasStarted: boolean }> {
    const { rows } = await sql.query<{ last_seq: number; has_started: boolean }>(
      `SELECT coalesce((SELECT last_seq FROM run_streams WHERE run_uid = $1), 0) AS last_seq,
              EXISTS (SELECT 1 FROM stream.run_events WHERE run_uid = $1 AND attempt IS NOT NULL) AS has_started`,
      [runUid],
    );
    return { lastSeq: rows[0]?.last_seq ?? 0, hasStarted: rows[0]?.has_started ?? false };
  },
};

/** Records which blob is the transcript that a third-party harness wrote of a run, once it is uploaded. */
export const harnessTranscriptStore = {
  async find(sql: Sql, runUid: string): Promise<string | undefined> {
    const { rows } = await sql.query<{ blob_key: string }>(
      "SELECT blob_key FROM harness_transcripts WHERE run_uid = $1",
      [runUid],
    );
    return rows[0]?.blob_key;
  },

  /**
   * Records the newest blob. Returns the key of the previous blob if it is a different one. The caller owns the lease,
   * so no concurrent call does this for the run.
   */
  async replace(tx: Sql, runUid: string, blobKey: string): Promise<string | undefined> {
    const before = await this.find(tx, runUid);
    await tx.query(
      "INSERT INTO harness_transcripts (run_uid, blob_key) VALUES ($1, $2) ON CONFLICT (run_uid) DO UPDATE SET blob_key = excluded.blob_key, written_at = now()",
      [runUid, blobKey],
    );
    return before === blobKey ? undefined : before;
  },
};

export type TranscriptStore = typeof transcriptStore;
