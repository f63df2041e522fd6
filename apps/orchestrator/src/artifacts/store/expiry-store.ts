import type { Sql } from "@millwright/database";

/** Files to which no row refers any more, and whether nothing else has expired. */
export type Expired = { readonly blobKeys: readonly string[]; readonly isLast: boolean };

/** Bounds of one transaction. */
const RUNS_MAX = 50;
const EVENTS_MAX = 5_000;
const ARTIFACTS_MAX = 500;

/**
 * Whether all runs of the conversation and of the tree of a run `r` have ended, the conversation's before $1. Until
 * then, a run may continue from their events.
 */
const HAS_ENDED = `NOT EXISTS (SELECT 1 FROM runs o
                   WHERE o.conversation_uid = r.conversation_uid AND (o.finished_at IS NULL OR o.finished_at >= $1))
  AND NOT EXISTS (SELECT 1 FROM runs o
                   WHERE o.root_run_uid = r.root_run_uid AND o.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS'))`;

/** Whether the conversation of a run `r` has no stored workspace, which is a difference to commits that events name. */
const HAS_NO_WORKSPACE = `NOT EXISTS (SELECT 1 FROM runs o JOIN snapshots s ON s.run_uid = o.uid
                   WHERE o.conversation_uid = r.conversation_uid)`;

const HAS_CONTENT = "a.committed_at IS NOT NULL AND a.artifact_type IN ('PLAN', 'SCREENSHOT', 'FILE')";

/**
 * Deletes what ended runs have produced. Runs are locked first and checked again in a second statement, which sees what
 * was committed before the lock was acquired.
 */
export const expiryStore = {
  /**
   * Deletes events that workers appended to runs of conversations that ended before a time; when a run has none left,
   * its transcripts; when a conversation has none left, its terminal output. The events of the orchestrator stay.
   */
  async dropEvents(tx: Sql, endedBefore: Date): Promise<Expired> {
    const candidates = await keysOf(
      tx,
      `SELECT r.uid AS key
         FROM transcripts t
         JOIN runs r ON r.uid = t.run_uid
        WHERE t.written_at < $1 AND ${HAS_ENDED} AND ${HAS_NO_WORKSPACE}
        ORDER BY t.written_at
        LIMIT $2
          FOR UPDATE OF r SKIP LOCKED`,
      [endedBefore, RUNS_MAX],
    );
    if (candidates.length === 0) return { blobKeys: [], isLast: true };
    const runs = await keysOf(
      tx,
      `SELECT r.uid AS key FROM runs r WHERE r.uid = ANY ($2::uuid[]) AND ${HAS_ENDED} AND ${HAS_NO_WORKSPACE}`,
      [endedBefore, candidates],
    );
    const { rowCount } = await tx.query(
      `DELETE FROM stream.run_events e
        USING (SELECT run_uid, seq
                 FROM stream.run_events
                WHERE run_uid = ANY ($1::uuid[]) AND attempt IS NOT NULL
                ORDER BY run_uid, seq
                LIMIT $2) expired
        WHERE e.run_uid = expired.run_uid AND e.seq = expired.seq`,
      [runs, EVENTS_MAX],
    );
    if (rowCount === EVENTS_MAX) return { blobKeys: [], isLast: false };
    const transcripts = await keysOf(
      tx,
      `WITH of_events AS (DELETE FROM transcripts WHERE run_uid = ANY ($1::uuid[]) RETURNING blob_key),
            of_harness AS (DELETE FROM harness_transcripts WHERE run_uid = ANY ($1::uuid[]) RETURNING blob_key)
       SELECT blob_key AS key FROM of_events UNION ALL SELECT blob_key FROM of_harness`,
      [runs],
    );
    // While another run of the conversation has events, its next reader would write the same file again.
    const terminalOutputs = await keysOf(
      tx,
      `DELETE FROM block_snapshots b
        USING runs r
        WHERE r.uid = ANY ($1::uuid[])
          AND b.conversation_uid = r.conversation_uid
          AND NOT EXISTS (SELECT 1 FROM runs o JOIN transcripts t ON t.run_uid = o.uid
                           WHERE o.conversation_uid = r.conversation_uid)
       RETURNING b.blob_key AS key`,
      [runs],
    );
    return { blobKeys: [...transcripts, ...terminalOutputs], isLast: candidates.length < RUNS_MAX };
  },

  /** Deletes plans, files and screenshots of runs of conversations that ended before a time. */
  async dropArtifacts(tx: Sql, endedBefore: Date): Promise<Expired> {
    const candidates = await keysOf(
      tx,
      `SELECT a.uid AS key
         FROM artifacts a
         JOIN runs r ON r.uid = a.run_uid
        WHERE a.created_at < $1 AND ${HAS_CONTENT} AND ${HAS_ENDED}
        ORDER BY a.created_at
        LIMIT $2
          FOR UPDATE OF r SKIP LOCKED`,
      [endedBefore, ARTIFACTS_MAX],
    );
    const blobKeys = await keysOf(
      tx,
      `DELETE FROM artifacts a
        USING runs r
        WHERE a.uid = ANY ($2::uuid[]) AND r.uid = a.run_uid AND ${HAS_ENDED}
       RETURNING a.blob_key AS key`,
      [endedBefore, candidates],
    );
    return { blobKeys, isLast: candidates.length < ARTIFACTS_MAX };
  },
};

/** Returns the column `key` of a query, without nulls. */
const keysOf = async (sql: Sql, text: string, values: readonly unknown[]): Promise<string[]> =>
  (await sql.query<{ key: string | null }>(text, [...values])).rows.flatMap(({ key }) => key ?? []);
