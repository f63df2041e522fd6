import type { Sql } from "@millwright/database";
import { enqueueAllWork, enqueueWork } from "@millwright/work";

/** Kinds of work on blobs. Their payloads are `{run_uid}`, `{blob_key}` and `{}`. */
export const WRITE_TRANSCRIPT = "write_transcript";
export const DELETE_BLOB = "delete_blob";
export const SWEEP_BLOBS = "sweep_blobs";

type EndedAttempt = { readonly runUid: string; readonly executionId: number; readonly attempt: number };

/**
 * Enqueues the writing of transcripts after executions have ended. Call it in the transaction of these ends, after the
 * last events.
 */
export const enqueueTranscripts = (tx: Sql, ended: readonly EndedAttempt[]): Promise<void> =>
  enqueueAllWork(
    tx,
    ended.map(({ runUid, executionId, attempt }) => ({
      kind: WRITE_TRANSCRIPT,
      key: `${executionId}-${attempt}`,
      payload: { run_uid: runUid },
    })),
  );

/** In milliseconds; longer than any signed link to a file is valid. */
const DELETE_AFTER_MS = 60 * 60 * 1000;

/** Enqueues the deletion of a blob for a time at which no signed link to it is valid any more. */
export const enqueueBlobDeletion = (tx: Sql, blobKey: string, now: Date): Promise<unknown> =>
  enqueueWork(tx, {
    kind: DELETE_BLOB,
    key: blobKey,
    payload: { blob_key: blobKey },
    runAt: new Date(now.getTime() + DELETE_AFTER_MS),
  });

/** Enqueues a sweep of the blobs at `runAt`, by one of the replicas. */
export const enqueueSweep = (sql: Sql, runAt: Date): Promise<unknown> =>
  enqueueWork(sql, { kind: SWEEP_BLOBS, key: runAt.toISOString(), payload: {}, runAt });
