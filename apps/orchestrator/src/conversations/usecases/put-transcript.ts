import type { Clock } from "@millwright/clock";
import { enqueueBlobDeletion } from "../../storage/store/blob-work.ts";
import type { harnessTranscriptStore } from "../store/transcript-store.ts";
import type { BlobContent, BlobStore, SignedUpload } from "@millwright/blobs";
import { DomainError, invalidArgument } from "@millwright/errors";
import { harnessTranscriptKey } from "../../storage/domain/blob-keys.ts";
import { TRANSCRIPT_TYPE } from "../domain/transcript.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { RequireLease } from "../../runs/usecases/require-lease.ts";
import type { Transaction } from "../../storage/store/transaction.ts";

export type PutTranscriptDeps = {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly harnessTranscripts: Pick<typeof harnessTranscriptStore, "replace">;
  readonly clock: Clock;
  readonly blobs: Pick<BlobStore, "signUpload">;
};

/** Maximum size of the transcript of a third-party harness, in bytes. */
export const TRANSCRIPT_BYTES_MAX = 64 * 1024 * 1024;
const UPLOAD_SECONDS = 900;

/**
 * Returns the URL to which an attempt uploads the session transcript of a third-party harness. As soon as it is
 * uploaded, it is the transcript of the run. A repeated call for the same content returns a URL to the same key.
 *
 * Errors: lease_lost · transcript_invalid · transcript_too_large (too_large).
 */
export async function putTranscript(
  deps: PutTranscriptDeps,
  lease: LeaseRef,
  { size, sha256 }: BlobContent,
): Promise<{ upload: SignedUpload }> {
  if (!/^[0-9a-f]{64}$/.test(sha256))
    throw invalidArgument("transcript_invalid", "sha256 of a transcript must be 64 lower-case hexadecimal digits.");
  if (!(size >= 0 && size <= TRANSCRIPT_BYTES_MAX))
    throw new DomainError({
      kind: "too_large",
      reason: "transcript_too_large",
      message: `A transcript must have at most ${TRANSCRIPT_BYTES_MAX} bytes (got ${size}).`,
    });
  const blobKey = await deps.transaction(async (tx) => {
    const { runUid } = await deps.requireLease(tx, lease.executionId, lease.attempt);
    const key = harnessTranscriptKey(runUid, lease, sha256);
    const replaced = await deps.harnessTranscripts.replace(tx, runUid, key);
    if (replaced !== undefined) await enqueueBlobDeletion(tx, replaced, deps.clock.now());
    return key;
  });
  return {
    upload: await deps.blobs.signUpload(blobKey, {
      size,
      sha256,
      contentType: TRANSCRIPT_TYPE,
      expiresInSeconds: UPLOAD_SECONDS,
    }),
  };
}
