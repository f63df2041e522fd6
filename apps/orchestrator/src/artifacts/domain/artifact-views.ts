import { omitUndefined } from "@millwright/json";
import type { JsonObject } from "../../catalog/domain/agent-config.ts";
import type { Artifact } from "../../runs/domain/run-artifact.ts";

export type Download = { readonly url: string; readonly expiresAt: Date };

/**
 * Returns whether the artifact itself can be retrieved. Pull requests and references are read at the URLs they contain.
 */
export const isRetrievable = (artifact: Artifact): boolean => ["PLAN", "SCREENSHOT", "FILE"].includes(artifact.type);

/**
 * Returns `data` of the response that contains one artifact, in which the mime type is named content_type.
 *
 * @param isAnonymous omits the path of a file in the workspace
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
  return omitUndefined({
    download_url: download?.url,
    expires_at: download?.expiresAt.toISOString(),
    content_type: contentType,
    ...facts,
    filepath: isAnonymous ? undefined : filepath,
    size_bytes: artifact.type === "FILE" ? artifact.sizeBytes : undefined,
  });
}

/** Returns the file name under which a browser saves the bytes. */
export function downloadName(artifact: Artifact): string {
  const { filename } = artifact.data;
  return typeof filename === "string" ? filename : `screenshot-${artifact.uid}.${downloadType(artifact).split("/")[1]}`;
}

/** Returns the content type with which the bytes are served. */
export const downloadType = ({ data: { mime_type: mimeType } }: Artifact): string =>
  typeof mimeType === "string" ? mimeType : "image/png";
