import type { BlobStore } from "@millwright/blobs";
import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { Artifact } from "../domain/artifact.ts";
import { downloadName, downloadType } from "../domain/artifact-views.ts";
import type { Run } from "../domain/run.ts";
import type { ListOpenRuns } from "../domain/session-sharing.ts";

export type GetScreenshotUrlDeps = {
  readonly findArtifact: (uid: string) => Promise<Artifact | undefined>;
  readonly findVisibleRun: (caller: Caller, uid: string) => Promise<Run | undefined>;
  readonly listOpenRuns: ListOpenRuns;
  readonly blobs: Pick<BlobStore, "signDownload">;
};

const LINK_SECONDS = 900;

/** A link to a screenshot that a visible run of this conversation made, or one that is open to its link. Errors: screenshot_not_found, whatever of it is not there. */
export async function getScreenshotUrl(deps: GetScreenshotUrlDeps, caller: Caller, conversationUid: string, uid: string): Promise<string> {
  const artifact = await deps.findArtifact(uid);
  if (artifact?.type !== "SCREENSHOT" || artifact.blobKey === undefined) throw notFound("screenshot");
  const run = (await deps.findVisibleRun(caller, artifact.runUid)) ?? (await deps.listOpenRuns(caller, conversationUid, "view")).find((open) => open.uid === artifact.runUid);
  if (run?.conversationUid !== conversationUid.toLowerCase()) throw notFound("screenshot");
  return deps.blobs.signDownload(artifact.blobKey, { expiresInSeconds: LINK_SECONDS, contentType: downloadType(artifact), filename: downloadName(artifact) });
}
