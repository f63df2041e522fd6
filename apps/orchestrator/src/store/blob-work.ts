import type { Sql } from "@millwright/database";
import { enqueueWork, sendWork } from "@millwright/work";

/** Kinds of work on files: what their payloads hold is `{run_uid}`, `{blob_key}` and nothing. */
export const WRITE_TRANSCRIPT = "write_transcript";
export const DELETE_BLOB = "delete_blob";
export const SWEEP_BLOBS = "sweep_blobs";

/** Has the transcript written once the end of an execution is committed. Call it in that transaction, after the last event. */
export const enqueueTranscript = (tx: Sql, runUid: string, executionId: number, attempt: number): Promise<void> =>
  sendWork(tx, { kind: WRITE_TRANSCRIPT, key: `${executionId}-${attempt}`, payload: { run_uid: runUid } });

/** Longer than any link to a file works. */
const DELETE_AFTER_MS = 60 * 60 * 1000;

/** Has a blob deleted when no signed link to it works any more. */
export const enqueueBlobDeletion = (tx: Sql, blobKey: string, now: Date): Promise<unknown> =>
  enqueueWork(tx, {
    kind: DELETE_BLOB,
    key: blobKey,
    payload: { blob_key: blobKey },
    runAt: new Date(now.getTime() + DELETE_AFTER_MS),
  });

/** Has the blobs swept then, by one of the replicas. */
export const enqueueSweep = (sql: Sql, runAt: Date): Promise<unknown> =>
  enqueueWork(sql, { kind: SWEEP_BLOBS, key: runAt.toISOString(), payload: {}, runAt });
