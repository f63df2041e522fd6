import type { BlobStore } from "@millwright/blobs";
import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { Artifact } from "../../runs/domain/run-artifact.ts";
import { downloadName, downloadType } from "../domain/artifact-views.ts";
import type { Run } from "../../runs/domain/run.ts";
import type { ListSharedRuns } from "../../runs/domain/session-sharing.ts";

export type GetScreenshotUrlDeps = {
  readonly findArtifact: (uid: string) => Promise<Artifact | undefined>;
  readonly findVisibleRun: (caller: Caller, uid: string) => Promise<Run | undefined>;
  readonly listSharedRuns: ListSharedRuns;
  readonly blobs: Pick<BlobStore, "signDownload">;
};

const LINK_SECONDS = 900;

/**
 * Returns a link to a screenshot that the conversation shows: of one of its visible runs, of a visible run below one of
 * them, or of a run that the conversation's link opens.
 *
 * Errors: screenshot_not_found, also if the conversation does not show it.
 */
export async function getScreenshotUrl(
  deps: GetScreenshotUrlDeps,
  caller: Caller,
  conversationUid: string,
  uid: string,
): Promise<string> {
  const artifact = await deps.findArtifact(uid);
  if (artifact?.type !== "SCREENSHOT" || artifact.blobKey === undefined) throw notFound("screenshot");
  const isShown =
    (await isInTree(deps, caller, conversationUid.toLowerCase(), artifact.runUid)) ||
    (await isOpen(deps, caller, conversationUid, artifact.runUid));
  if (!isShown) throw notFound("screenshot");
  return deps.blobs.signDownload(artifact.blobKey, {
    expiresInSeconds: LINK_SECONDS,
    contentType: downloadType(artifact),
    filename: downloadName(artifact),
  });
}

/**
 * Returns whether the run or one of its ancestors belongs to the conversation, and the caller may see it and every run
 * in between: a conversation nests its child runs.
 */
async function isInTree(
  deps: GetScreenshotUrlDeps,
  caller: Caller,
  conversationUid: string,
  runUid: string,
): Promise<boolean> {
  const run = await deps.findVisibleRun(caller, runUid);
  if (!run) return false;
  if (run.conversationUid === conversationUid) return true;
  return run.parentRunUid !== undefined && isInTree(deps, caller, conversationUid, run.parentRunUid);
}

const isOpen = async (
  deps: GetScreenshotUrlDeps,
  caller: Caller,
  conversationUid: string,
  runUid: string,
): Promise<boolean> => (await deps.listSharedRuns(caller, conversationUid, "view")).some(({ uid }) => uid === runUid);
