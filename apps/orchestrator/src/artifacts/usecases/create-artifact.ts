import type { ArtifactStore } from "../store/artifact-store.ts";
import { appendRunEvents } from "../../runs/store/run-events-store.ts";
import { createHash } from "node:crypto";
import { DomainError, invalidArgument } from "@millwright/errors";
import type { BlobStore, SignedUpload } from "@millwright/blobs";
import type { Sql } from "@millwright/database";
import { newUid, type ArtifactUid, type RunUid } from "@millwright/ids";
import {
  ARTIFACT_LIMITS,
  checkNewArtifact,
  type ArtifactInsert,
  type CheckedArtifact,
  type NewArtifact,
  type StoredArtifact,
} from "../domain/artifact.ts";
import { artifactCreated, artifactUpdated } from "../domain/artifact-event.ts";
import { artifactKey } from "../../storage/domain/blob-keys.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { RequireLease } from "../../runs/usecases/require-lease.ts";
import type { Transaction } from "../../storage/store/transaction.ts";

export type CreateArtifactDeps = {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly artifacts: Pick<
    ArtifactStore,
    "findByClientId" | "insert" | "findPlan" | "updatePlan" | "countOfRun" | "dropUncommitted"
  >;
  readonly blobs: Pick<BlobStore, "put" | "signUpload">;
};

export type CreateArtifactInput = {
  readonly lease: LeaseRef;
  /** The worker's own identifier of the artifact. Reports with the same identifier create one artifact per run. */
  readonly clientArtifactId: string;
  readonly report: NewArtifact;
  readonly isPublic: boolean;
};

/** `upload` is absent if the content was sent inline, or the artifact has none. */
export type CreatedArtifact = { readonly artifactUid: string; readonly upload?: SignedUpload };

/** Lifetime of a signed upload URL, in seconds. */
const UPLOAD_SECONDS = 900;

/**
 * Registers an artifact that an agent reports. Small content is sent with the report and visible at once; larger
 * content is uploaded to the returned URL and becomes visible when it is committed. A repeated report returns the same
 * artifact. If the run reports a plan with the title of an earlier one, the text of the earlier plan is replaced.
 *
 * Errors: lease_lost · artifact_invalid · artifact_too_large · artifact_quota.
 */
export async function createArtifact(deps: CreateArtifactDeps, input: CreateArtifactInput): Promise<CreatedArtifact> {
  const checked = checkNewArtifact(input.report);
  const { lease, clientArtifactId } = input;
  if (clientArtifactId === "" || clientArtifactId.length > 200)
    throw invalidArgument("artifact_invalid", "client_artifact_id must have 1 to 200 characters.");
  const known = await deps.transaction(async (tx) => {
    const { runUid } = await deps.requireLease(tx, lease.executionId, lease.attempt);
    const artifact = await deps.artifacts.findByClientId(tx, runUid, clientArtifactId);
    const isNew = !artifact && !(await findPlan(deps, tx, runUid, checked));
    if (isNew && (await deps.artifacts.countOfRun(tx, runUid)) >= ARTIFACT_LIMITS.perRunMax) throw overQuota();
    return { runUid: runUid as RunUid, artifact };
  });
  if (known.artifact?.isCommitted) return { artifactUid: known.artifact.uid };

  const ids = { uid: known.artifact?.uid ?? newUid<ArtifactUid>(), runUid: known.runUid };
  const insert: ArtifactInsert = {
    ...ids,
    ...contentOf(checked, ids),
    clientArtifactId,
    executionId: lease.executionId,
    isPublic: input.isPublic,
  };
  if (checked.bytes === "inline")
    await deps.blobs.put(insert.blobKey!, checked.content, { contentType: checked.contentType });
  const stored = await deps.transaction(async (tx) => {
    await deps.requireLease(tx, lease.executionId, lease.attempt);
    const findAnother = () => deps.artifacts.findByClientId(tx, known.runUid, clientArtifactId);
    // Announced but never uploaded: the new announcement replaces it, as a restarted attempt may have other bytes.
    if (known.artifact && !(await deps.artifacts.dropUncommitted(tx, insert.uid))) return findAnother();
    const plan = await findPlan(deps, tx, known.runUid, checked);
    if (plan) return updatePlan(deps, tx, plan, insert);
    if (!(await deps.artifacts.insert(tx, insert))) return findAnother();
    if (insert.isCommitted) await appendRunEvents(tx, known.runUid, [artifactCreated(insert, lease.executionId)]);
    return insert;
  });
  // Undefined if the announcement was swept concurrently; its client id is then free again.
  return stored ? createdArtifact(deps, stored, checked) : createArtifact(deps, input);
}

const findPlan = async (
  deps: CreateArtifactDeps,
  tx: Sql,
  runUid: string,
  { type, data: { title } }: CheckedArtifact,
): Promise<StoredArtifact | undefined> =>
  type === "PLAN" && typeof title === "string" ? deps.artifacts.findPlan(tx, runUid, title) : undefined;

async function updatePlan(
  deps: CreateArtifactDeps,
  tx: Sql,
  plan: StoredArtifact,
  { content = "", executionId, runUid }: ArtifactInsert,
): Promise<StoredArtifact> {
  if (plan.content === content) return plan;
  await deps.artifacts.updatePlan(tx, plan.uid, content);
  await appendRunEvents(tx, runUid, [artifactUpdated(plan, executionId)]);
  return { ...plan, content };
}

type Content = Pick<ArtifactInsert, "type" | "data" | "content" | "blobKey" | "sizeBytes" | "sha256" | "isCommitted">;

function contentOf(checked: CheckedArtifact, ids: Pick<ArtifactInsert, "uid" | "runUid">): Content {
  const { type, data } = checked;
  switch (checked.bytes) {
    case "none":
      return { type, data, isCommitted: true };
    case "text":
      return { type, data, content: checked.text, isCommitted: true };
    case "inline": {
      const sha256 = createHash("sha256").update(checked.content).digest("hex");
      return {
        type,
        data,
        blobKey: artifactKey(ids, sha256),
        sizeBytes: checked.content.byteLength,
        sha256,
        isCommitted: true,
      };
    }
    default: // upload
      return {
        type,
        data,
        blobKey: artifactKey(ids, checked.sha256),
        sizeBytes: checked.sizeBytes,
        sha256: checked.sha256,
        isCommitted: false,
      };
  }
}

async function createdArtifact(
  deps: CreateArtifactDeps,
  { uid, isCommitted, blobKey, sizeBytes: size, sha256 }: Omit<ArtifactInsert, "clientArtifactId" | "executionId">,
  { contentType }: CheckedArtifact,
): Promise<CreatedArtifact> {
  if (isCommitted || blobKey === undefined || size === undefined || sha256 === undefined) return { artifactUid: uid };
  return {
    artifactUid: uid,
    upload: await deps.blobs.signUpload(blobKey, { size, sha256, contentType, expiresInSeconds: UPLOAD_SECONDS }),
  };
}

const overQuota = (): DomainError =>
  new DomainError({
    kind: "too_large",
    reason: "artifact_quota",
    message: `A run can have at most ${ARTIFACT_LIMITS.perRunMax} artifacts. Combine files into an archive.`,
  });
