import type { BlobStore } from "@millwright/blobs";
import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { Artifact } from "../domain/artifact.ts";
import { downloadName, downloadType } from "../domain/artifact-views.ts";
import type { Run } from "../domain/run.ts";

export type GetScreenshotUrlDeps = {
  readonly findArtifact: (uid: string) => Promise<Artifact | undefined>;
  readonly findVisibleRun: (caller: Caller, uid: string) => Promise<Run | undefined>;
  readonly blobs: Pick<BlobStore, "signDownload">;
};

const LINK_SECONDS = 900;

/** A link to a screenshot that a visible run of this conversation made. Errors: screenshot_not_found, whatever of it is not there. */
export async function getScreenshotUrl(deps: GetScreenshotUrlDeps, caller: Caller, conversationUid: string, uid: string): Promise<string> {
  const artifact = await deps.findArtifact(uid);
  const run = artifact?.type === "SCREENSHOT" && artifact.blobKey !== undefined ? await deps.findVisibleRun(caller, artifact.runUid) : undefined;
  if (!artifact?.blobKey || run?.conversationUid !== conversationUid.toLowerCase()) throw notFound("screenshot");
  return deps.blobs.signDownload(artifact.blobKey, { expiresInSeconds: LINK_SECONDS, contentType: downloadType(artifact), filename: downloadName(artifact) });
}
