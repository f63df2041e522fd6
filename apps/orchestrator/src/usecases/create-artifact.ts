import { createHash } from "node:crypto";
import { DomainError, invalidArgument } from "@millwright/errors";
import type { BlobStore } from "@millwright/blobs";
import type { Sql } from "@millwright/database";
import { newUid, type ArtifactUid, type RunUid } from "@millwright/ids";
import { ARTIFACT_LIMITS, checkNewArtifact, type Artifact, type ArtifactType, type CheckedArtifact, type NewArtifact } from "../domain/artifact.ts";
import { artifactCreated } from "../domain/artifact-event.ts";
import type { JsonObject } from "../domain/agent-config.ts";
import type { NewRunEvent } from "../domain/run-events.ts";
import type { LeaseRef } from "../domain/worker-session.ts";
import type { RequireLease, Transaction } from "./lease-check.ts";

type Stored = Artifact & { readonly isCommitted: boolean; readonly sha256?: string };
type Insert = {
  readonly uid: ArtifactUid;
  readonly runUid: RunUid;
  readonly clientArtifactId: string;
  readonly executionId: number;
  readonly type: ArtifactType;
  readonly data: JsonObject;
  readonly content?: string;
  readonly blobKey?: string;
  readonly sizeBytes?: number;
  readonly sha256?: string;
  readonly isPublic: boolean;
  readonly isCommitted: boolean;
};

export type CreateArtifactDeps = {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly appendRunEvents: (tx: Sql, runUid: string, events: readonly NewRunEvent[]) => Promise<void>;
  readonly artifacts: {
    findByClientId(sql: Sql, runUid: string, clientArtifactId: string): Promise<Stored | undefined>;
    insert(tx: Sql, artifact: Insert): Promise<boolean>;
    countOfRun(sql: Sql, runUid: string): Promise<number>;
    dropUncommitted(tx: Sql, uid: string): Promise<void>;
  };
  readonly blobs: Pick<BlobStore, "put" | "signedUrl">;
};

export type CreateArtifactInput = {
  readonly lease: LeaseRef;
  /** The worker's own name for it: reported once per run, however often it is sent. */
  readonly clientArtifactId: string;
  readonly report: NewArtifact;
  readonly isPublic: boolean;
};

/** How long a signed upload may take to begin. */
export const UPLOAD_SECONDS = 900;

/**
 * Registers what an agent reports. Small content comes with the report and is visible at once; larger content is uploaded to
 * the answered URL and becomes visible by its commit. A repeated report answers the same artifact (execution design §5.6).
 *
 * Errors: lease_lost · artifact_invalid · artifact_too_large · artifact_quota.
 */
export async function createArtifact(deps: CreateArtifactDeps, input: CreateArtifactInput): Promise<{ artifactUid: string; uploadUrl: string }> {
  const checked = checkNewArtifact(input.report);
  const { lease, clientArtifactId } = input;
  if (clientArtifactId === "" || clientArtifactId.length > 200) throw invalidArgument("artifact_invalid", "client_artifact_id must have 1 to 200 characters.");
  const known = await deps.transaction(async (tx) => {
    const { runUid } = await deps.requireLease(tx, lease.executionId, lease.attempt);
    const artifact = await deps.artifacts.findByClientId(tx, runUid, clientArtifactId);
    if (!artifact && (await deps.artifacts.countOfRun(tx, runUid)) >= ARTIFACT_LIMITS.perRunMax) throw overQuota();
    return { runUid: runUid as RunUid, artifact };
  });
  if (known.artifact?.isCommitted) return answer(deps, known.artifact, checked);

  const uid = known.artifact?.uid ?? newUid<ArtifactUid>();
  const insert = { ...facts(checked), ...{ uid, runUid: known.runUid, clientArtifactId, executionId: lease.executionId, isPublic: input.isPublic } };
  const blobKey = checked.bytes === "inline" || checked.bytes === "upload" ? blobKeyOf(insert) : undefined;
  if (checked.bytes === "inline" && blobKey) await deps.blobs.put(blobKey, checked.content, { contentType: checked.contentType });
  const stored = await deps.transaction(async (tx) => {
    await deps.requireLease(tx, lease.executionId, lease.attempt);
    // Announced before, never uploaded: what is announced now counts, for a restarted attempt may have other bytes.
    if (known.artifact) await deps.artifacts.dropUncommitted(tx, uid);
    if (!(await deps.artifacts.insert(tx, { ...insert, ...(blobKey ? { blobKey } : {}) }))) return deps.artifacts.findByClientId(tx, known.runUid, clientArtifactId);
    if (insert.isCommitted) await deps.appendRunEvents(tx, known.runUid, [artifactCreated(insert, lease.executionId)]);
    return { ...insert, ...(blobKey ? { blobKey } : {}) };
  });
  return answer(deps, stored!, checked);
}

type Facts = Pick<Insert, "type" | "data" | "isCommitted"> & Partial<Pick<Insert, "content" | "sizeBytes" | "sha256">>;

function facts(checked: CheckedArtifact): Facts {
  const { type, data } = checked;
  switch (checked.bytes) {
    case "none":
      return { type, data, isCommitted: true };
    case "text":
      return { type, data, content: checked.text, isCommitted: true };
    case "inline":
      return { type, data, sizeBytes: checked.content.byteLength, sha256: createHash("sha256").update(checked.content).digest("hex"), isCommitted: true };
    default: // upload
      return { type, data, sizeBytes: checked.sizeBytes, sha256: checked.sha256, isCommitted: false };
  }
}

const blobKeyOf = ({ runUid, uid }: Pick<Insert, "runUid" | "uid">): string => `artifacts/${runUid}/${uid}`;

function answer(deps: CreateArtifactDeps, artifact: Pick<Stored, "uid" | "isCommitted" | "blobKey" | "sizeBytes">, checked: CheckedArtifact): { artifactUid: string; uploadUrl: string } {
  const uploadUrl =
    artifact.isCommitted || artifact.blobKey === undefined
      ? ""
      : deps.blobs.signedUrl(artifact.blobKey, {
          method: "PUT",
          expiresInSeconds: UPLOAD_SECONDS,
          contentType: checked.contentType,
          ...(artifact.sizeBytes === undefined ? {} : { sizeBytesMax: artifact.sizeBytes }),
        });
  return { artifactUid: artifact.uid, uploadUrl };
}

const overQuota = (): DomainError =>
  new DomainError({ kind: "too_large", reason: "artifact_quota", message: `A run can have at most ${ARTIFACT_LIMITS.perRunMax} artifacts.` });
