import type { SnapshotStore } from "../../runs/store/snapshot-store.ts";
import type { BlobContent, BlobStore, SignedUpload } from "@millwright/blobs";
import { DomainError, invalidArgument } from "@millwright/errors";
import { SNAPSHOT_TYPE, snapshotKeyOf } from "../../storage/domain/blob-keys.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { RequireLease } from "../../runs/usecases/require-lease.ts";
import type { Transaction } from "../../storage/store/transaction.ts";

export type PutSnapshotDeps = {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly snapshots: Pick<SnapshotStore, "put">;
  readonly blobs: Pick<BlobStore, "signUpload">;
};

/** Maximum size of a workspace snapshot, in bytes. */
export const SNAPSHOT_BYTES_MAX = 512 * 1024 * 1024;
const UPLOAD_SECONDS = 900;

/**
 * Returns the URL to which an attempt uploads its workspace. Each content has a key of its own, so an upload in
 * progress never overwrites the snapshot from which the run would resume. A repeated call for the same content returns
 * the same key.
 *
 * Errors: lease_lost · snapshot_invalid · snapshot_too_large (too_large).
 */
export async function putSnapshot(
  deps: PutSnapshotDeps,
  lease: LeaseRef,
  { size, sha256 }: BlobContent,
): Promise<{ upload: SignedUpload; snapshotKey: string }> {
  if (!/^[0-9a-f]{64}$/.test(sha256))
    throw invalidArgument(
      "snapshot_invalid",
      "sha256 of a workspace snapshot must be 64 lower-case hexadecimal digits.",
    );
  if (!(size >= 0 && size <= SNAPSHOT_BYTES_MAX))
    throw new DomainError({
      kind: "too_large",
      reason: "snapshot_too_large",
      message: `A workspace snapshot must have at most ${SNAPSHOT_BYTES_MAX} bytes (got ${size}).`,
    });
  const snapshotKey = await deps.transaction(async (tx) => {
    const { runUid } = await deps.requireLease(tx, lease.executionId, lease.attempt);
    const key = snapshotKeyOf(runUid, lease, sha256);
    await deps.snapshots.put(tx, {
      key,
      runUid,
      executionId: lease.executionId,
      attempt: lease.attempt,
      sizeBytes: size,
    });
    return key;
  });
  return {
    upload: await deps.blobs.signUpload(snapshotKey, {
      size,
      sha256,
      contentType: SNAPSHOT_TYPE,
      expiresInSeconds: UPLOAD_SECONDS,
    }),
    snapshotKey,
  };
}
