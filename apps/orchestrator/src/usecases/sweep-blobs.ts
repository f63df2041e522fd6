import type { BlobStore, ListedBlob } from "@millwright/blobs";
import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { BLOB_FOLDERS } from "../domain/blob-keys.ts";
import type { Transaction } from "./lease-check.ts";

export type SweepBlobsDeps = {
  readonly clock: Clock;
  readonly transaction: Transaction;
  readonly files: {
    dropUncommittedArtifacts(tx: Sql, before: Date, limit: number): Promise<string[]>;
    dropUnnamedSnapshots(tx: Sql, before: Date, limit: number): Promise<string[]>;
    dropExpiredSnapshots(tx: Sql, times: { before: Date; keptSince: Date }, limit: number): Promise<string[]>;
  };
  /** Has a blob deleted when no link to it works any more. */
  readonly deleteLater: (tx: Sql, key: string) => Promise<unknown>;
  /** Those of the keys that something names or is about to delete. */
  readonly knownKeys: (keys: readonly string[]) => Promise<ReadonlySet<string>>;
  readonly blobs: Pick<BlobStore, "list" | "delete" | "deleteDrafts">;
  /** How long the newest workspace of a conversation is kept for a follow-up. */
  readonly snapshotDays: number;
};

const HOUR_MS = 60 * 60 * 1000;
/** What nobody came back for in this time is given up (execution design §5.5). */
const ABANDONED_AFTER_MS = 24 * HOUR_MS;
const SWEEP_EVERY_MS = 6 * HOUR_MS;
const BATCH = 500;

/** The next time to sweep: 0, 6, 12 or 18 o'clock UTC, so that all replicas mean the same. */
export const nextSweep = (now: Date): Date =>
  new Date((Math.floor(now.getTime() / SWEEP_EVERY_MS) + 1) * SWEEP_EVERY_MS);

/**
 * Removes what nobody will ask for: uploads that were announced and not committed, workspaces that no execution ended with or will begin with,
 * files that nothing names (their transaction was rolled back, or their process died), drafts. Ends early, with the rest undone, when told to.
 */
export async function sweepBlobs(deps: SweepBlobsDeps, signal: AbortSignal): Promise<void> {
  const nowMs = deps.clock.now().getTime();
  const before = new Date(nowMs - ABANDONED_AFTER_MS);
  const keptSince = new Date(nowMs - deps.snapshotDays * 24 * HOUR_MS);
  await forget(deps, signal, (tx) => deps.files.dropUncommittedArtifacts(tx, before, BATCH));
  await forget(deps, signal, (tx) => deps.files.dropUnnamedSnapshots(tx, before, BATCH));
  await forget(deps, signal, (tx) => deps.files.dropExpiredSnapshots(tx, { before, keptSince }, BATCH));
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

/** Rows first, their blobs an hour later: a link that was given out just now works to its end. */
async function forget(deps: SweepBlobsDeps, signal: AbortSignal, drop: (tx: Sql) => Promise<string[]>): Promise<void> {
  for (let dropped = BATCH; dropped === BATCH;) {
    signal.throwIfAborted();
    dropped = await deps.transaction(async (tx) => {
      const keys = await drop(tx);
      for (const key of keys) await deps.deleteLater(tx, key);
      return keys.length;
    });
  }
}

async function deleteUnknown(deps: SweepBlobsDeps, keys: readonly string[]): Promise<void> {
  const known = await deps.knownKeys(keys);
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
