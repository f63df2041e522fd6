import type { ArtifactStore } from "../store/artifact-store.ts";
import { appendRunEvents } from "../../runs/store/run-events-store.ts";
import { createHash } from "node:crypto";
import type { BlobStore } from "@millwright/blobs";
import { DomainError, notFound } from "@millwright/errors";
import { artifactCreated } from "../domain/artifact-event.ts";
import type { StoredArtifact } from "../domain/artifact.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { RequireLease } from "../../runs/usecases/require-lease.ts";
import type { Transaction } from "../../storage/store/transaction.ts";

export type CommitArtifactDeps = {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly artifacts: Pick<ArtifactStore, "findOfRun" | "commit">;
  readonly blobs: Pick<BlobStore, "get" | "delete">;
};

/**
 * Makes an uploaded artifact visible after checking its size and hash against the announced ones. Safe to repeat.
 *
 * Errors: lease_lost · artifact_not_found · artifact_not_uploaded (conflict) · artifact_content_mismatch (conflict).
 */
export async function commitArtifact(deps: CommitArtifactDeps, lease: LeaseRef, artifactUid: string): Promise<void> {
  const artifact = await deps.transaction(async (tx) => {
    const { runUid } = await deps.requireLease(tx, lease.executionId, lease.attempt);
    return deps.artifacts.findOfRun(tx, runUid, artifactUid);
  });
  if (!artifact) throw notFound("artifact");
  if (artifact.isCommitted || artifact.blobKey === undefined) return;
  if (!(await hasAnnouncedContent(deps, artifact.blobKey, artifact))) {
    await deps.blobs.delete(artifact.blobKey);
    throw conflict(
      "artifact_content_mismatch",
      "The uploaded content does not match its announced size or SHA-256. Upload it again.",
    );
  }
  await deps.transaction(async (tx) => {
    await deps.requireLease(tx, lease.executionId, lease.attempt);
    if (await deps.artifacts.commit(tx, artifact.uid))
      return appendRunEvents(tx, artifact.runUid, [artifactCreated(artifact, lease.executionId)]);
    const now = await deps.artifacts.findOfRun(tx, artifact.runUid, artifact.uid);
    if (!now?.isCommitted) throw notFound("artifact"); // announced again, or swept
  });
}

/** Returns whether the uploaded content has the announced size and hash. Errors: artifact_not_uploaded. */
async function hasAnnouncedContent(
  deps: CommitArtifactDeps,
  key: string,
  { sizeBytes, sha256 }: StoredArtifact,
): Promise<boolean> {
  const blob = await deps.blobs.get(key);
  if (!blob)
    throw conflict("artifact_not_uploaded", "The artifact has no uploaded content. Upload it to the signed URL first.");
  const hash = createHash("sha256");
  for await (const chunk of blob.body) hash.update(chunk as Uint8Array);
  return blob.size === sizeBytes && hash.digest("hex") === sha256;
}

const conflict = (reason: string, message: string): DomainError =>
  new DomainError({ kind: "conflict", reason, message });
