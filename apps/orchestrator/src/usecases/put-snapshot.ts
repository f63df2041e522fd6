import type { BlobStore } from "@millwright/blobs";
import type { Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { LeaseRef } from "../domain/worker-session.ts";
import type { RequireLease, Transaction } from "./lease-check.ts";

export type PutSnapshotDeps = {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly snapshots: { put(tx: Sql, snapshot: { key: string; runUid: string; executionId: number; attempt: number; sizeBytes: number }): Promise<void> };
  readonly blobs: Pick<BlobStore, "signedUrl">;
};

/** The largest workspace snapshot (execution design §5.7). */
export const SNAPSHOT_BYTES_MAX = 512 * 1024 * 1024;
const UPLOAD_SECONDS = 900;

/**
 * Answers where an attempt puts its workspace. One key per attempt: asking again answers the same place.
 *
 * Errors: lease_lost · snapshot_too_large (too_large).
 */
export async function putSnapshot(deps: PutSnapshotDeps, lease: LeaseRef, sizeBytes: number): Promise<{ uploadUrl: string; snapshotKey: string }> {
  if (!(sizeBytes >= 0 && sizeBytes <= SNAPSHOT_BYTES_MAX))
    throw new DomainError({ kind: "too_large", reason: "snapshot_too_large", message: `A workspace snapshot can have at most ${SNAPSHOT_BYTES_MAX} bytes.` });
  const snapshotKey = await deps.transaction(async (tx) => {
    const { runUid } = await deps.requireLease(tx, lease.executionId, lease.attempt);
    const key = `snapshots/${runUid}/${lease.executionId}-${lease.attempt}`;
    await deps.snapshots.put(tx, { key, runUid, executionId: lease.executionId, attempt: lease.attempt, sizeBytes });
    return key;
  });
  const uploadUrl = deps.blobs.signedUrl(snapshotKey, {
    ...{ method: "PUT", expiresInSeconds: UPLOAD_SECONDS, contentType: "application/x-tar", sizeBytesMax: SNAPSHOT_BYTES_MAX },
  });
  return { uploadUrl, snapshotKey };
}
