import type { ArtifactUid, RunUid } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import type { JsonObject } from "../../catalog/domain/agent-config.ts";

export const ARTIFACT_TYPES = ["PLAN", "PULL_REQUEST", "SCREENSHOT", "FILE", "EXTERNAL_REFERENCE"] as const;
export type ArtifactType = (typeof ARTIFACT_TYPES)[number];

/**
 * An artifact of a run. `data` contains the members of its type, except uid, size and status, which are members of this
 * type.
 */
export type Artifact = {
  readonly uid: ArtifactUid;
  readonly runUid: RunUid;
  readonly type: ArtifactType;
  readonly data: JsonObject;
  /** PLAN: its text, in Markdown. */
  readonly content?: string;
  readonly blobKey?: string;
  readonly sizeBytes?: number;
  readonly isPublic: boolean;
  readonly createdAt: Date;
  /** PULL_REQUEST: open, draft, merged, closed or unknown. */
  readonly pullRequestStatus?: string;
};

/** Returns `data` of an ArtifactItem in the public form of a run. */
export function artifactItemData(artifact: Artifact): JsonObject {
  switch (artifact.type) {
    case "PLAN":
      return { document_uid: artifact.uid, artifact_uid: artifact.uid, notebook_uid: artifact.uid, ...artifact.data };
    case "PULL_REQUEST":
      return { ...artifact.data, status: artifact.pullRequestStatus ?? "unknown" };
    case "FILE":
      return omitUndefined({ artifact_uid: artifact.uid, ...artifact.data, size_bytes: artifact.sizeBytes });
    case "SCREENSHOT":
      return { artifact_uid: artifact.uid, ...artifact.data };
    default: // EXTERNAL_REFERENCE
      return artifact.data;
  }
}
