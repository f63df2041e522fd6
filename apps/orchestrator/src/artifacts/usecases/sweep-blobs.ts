import { enqueueBlobDeletion } from "../../storage/store/blob-work.ts";
import type { sweepStore } from "../store/sweep-store.ts";
import type { BlobStore, ListedBlob } from "@millwright/blobs";
import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { BLOB_FOLDERS } from "../../storage/domain/blob-keys.ts";
import type { Transaction } from "../../storage/store/transaction.ts";

export type SweepBlobsDeps = {
  readonly clock: Clock;
  readonly transaction: Transaction;
  readonly sql: Sql;
  readonly sweeps: typeof sweepStore;
  readonly blobs: Pick<BlobStore, "list" | "delete" | "deleteDrafts">;
  /** How long the newest workspace of a conversation is retained for a follow-up, in days. */
  readonly snapshotDays: number;
};

const HOUR_MS = 60 * 60 * 1000;
/** The age at which uncommitted uploads and unreferenced files are deleted, in milliseconds. */
const ABANDONED_AFTER_MS = 24 * HOUR_MS;
const SWEEP_EVERY_MS = 6 * HOUR_MS;
const BATCH = 500;

/** Returns the next time to sweep: 0, 6, 12 or 18 o'clock UTC, so that all replicas compute the same time. */
export const nextSweep = (now: Date): Date =>
  new Date((Math.floor(now.getTime() / SWEEP_EVERY_MS) + 1) * SWEEP_EVERY_MS);

/**
 * Deletes files that are no longer needed: uploads that were announced but not committed, workspaces with which no
 * execution ended or will start, files to which nothing refers (their transaction was rolled back, or their process
 * crashed), and drafts. Ends early, with the rest not deleted, if `signal` is aborted.
 */
export async function sweepBlobs(deps: SweepBlobsDeps, signal: AbortSignal): Promise<void> {
  const nowMs = deps.clock.now().getTime();
  const before = new Date(nowMs - ABANDONED_AFTER_MS);
  const retainedSince = new Date(nowMs - deps.snapshotDays * 24 * HOUR_MS);
  await deleteRows(deps, signal, (tx) => deps.sweeps.dropUncommittedArtifacts(tx, before, BATCH));
  await deleteRows(deps, signal, (tx) => deps.sweeps.dropUnreferencedSnapshots(tx, before, BATCH));
  await deleteRows(deps, signal, (tx) => deps.sweeps.dropExpiredSnapshots(tx, { before, retainedSince }, BATCH));
  for (const folder of BLOB_FOLDERS) {
    for await (const blobs of inBatches(deps.blobs.list(folder), ({ storedAt }) => storedAt < before)) {
      signal.throwIfAborted();
      await deleteUnknown(
        deps,
        blobs.map(({ key }) => key),
      );
    }
  }
  await deps.blobs.deleteDrafts(before);
}

/**
 * Deletes rows at once and their blobs an hour later, so that a link that was issued just before works until it
 * expires.
 */
async function deleteRows(
  deps: SweepBlobsDeps,
  signal: AbortSignal,
  drop: (tx: Sql) => Promise<string[]>,
): Promise<void> {
  for (let dropped = BATCH; dropped === BATCH;) {
    signal.throwIfAborted();
    dropped = await deps.transaction(async (tx) => {
      const keys = await drop(tx);
      for (const key of keys) await enqueueBlobDeletion(tx, key, deps.clock.now());
      return keys.length;
    });
  }
}

async function deleteUnknown(deps: SweepBlobsDeps, keys: readonly string[]): Promise<void> {
  const known = await deps.sweeps.known(deps.sql, keys);
  for (const key of keys) if (!known.has(key)) await deps.blobs.delete(key);
}

async function* inBatches(
  blobs: AsyncIterable<ListedBlob>,
  isWanted: (blob: ListedBlob) => boolean,
): AsyncGenerator<ListedBlob[]> {
  let batch: ListedBlob[] = [];
  for await (const blob of blobs) {
    if (isWanted(blob)) batch.push(blob);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
