import { dropAbsent, type JsonObject } from "./agent-config.ts";
import type { Artifact } from "./artifact.ts";

/** `data` of an ArtifactItem in a run (fields-runs §6.4). */
export function artifactItemData(artifact: Artifact): JsonObject {
  switch (artifact.type) {
    case "PLAN":
      return { document_uid: artifact.uid, artifact_uid: artifact.uid, notebook_uid: artifact.uid, ...artifact.data };
    case "PULL_REQUEST":
      return { ...artifact.data, status: artifact.pullRequestStatus ?? "unknown" };
    case "FILE":
      return dropAbsent({ artifact_uid: artifact.uid, ...artifact.data, size_bytes: artifact.sizeBytes });
    case "SCREENSHOT":
      return { artifact_uid: artifact.uid, ...artifact.data };
    default: // EXTERNAL_REFERENCE
      return artifact.data;
  }
}

export type Download = { readonly url: string; readonly expiresAt: Date };

/** Whether an artifact can be read by itself; pull requests and references are read where they point to (fields-runs §8.5). */
export const isRetrievable = (artifact: Artifact): boolean => ["PLAN", "SCREENSHOT", "FILE"].includes(artifact.type);

/**
 * `data` of the artifact read by itself (fields-runs §8.5), where the mime type is called content_type.
 *
 * @param isAnonymous hides where in the workspace a file was
 */
export function artifactDetailData(
  artifact: Artifact,
  download: Download | undefined,
  isAnonymous: boolean,
): JsonObject {
  const { mime_type: contentType, filepath, ...facts } = artifact.data;
  if (artifact.type === "PLAN")
    return {
      content: artifact.content ?? "",
      content_type: "text/markdown",
      document_uid: artifact.uid,
      notebook_uid: artifact.uid,
      ...facts,
    };
  return dropAbsent({
    download_url: download?.url,
    expires_at: download?.expiresAt.toISOString(),
    content_type: contentType,
    ...facts,
    filepath: isAnonymous ? undefined : filepath,
    size_bytes: artifact.type === "FILE" ? artifact.sizeBytes : undefined,
  });
}

/** What a browser saves the bytes under. */
export function downloadName(artifact: Artifact): string {
  const { filename } = artifact.data;
  return typeof filename === "string" ? filename : `screenshot-${artifact.uid}.${downloadType(artifact).split("/")[1]}`;
}

/** What the bytes are served as. */
export const downloadType = ({ data: { mime_type: mimeType } }: Artifact): string =>
  typeof mimeType === "string" ? mimeType : "image/png";
