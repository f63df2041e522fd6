import type { BlobStore } from "@millwright/blobs";
import type { Caller } from "@millwright/caller";
import { SNAPSHOT_TYPE } from "../../storage/domain/blob-keys.ts";
import type { Run } from "../../runs/domain/run.ts";
import { requireRunVerb } from "../../runs/usecases/run-access.ts";

export type ListHandoffFilesDeps = {
  /** Errors: run_not_found. */
  readonly getVisibleRun: (caller: Caller, uid: string) => Promise<Run>;
  /** Returns the workspace that the newest ended execution of a run saved. */
  readonly lastWorkspace: (
    runUid: string,
  ) => Promise<{ readonly uid: string; readonly key: string; readonly executionId: number } | undefined>;
  readonly blobs: Pick<BlobStore, "signDownload">;
};

export type HandoffFile = {
  readonly uid: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly downloadUrl: string;
};

const LINK_SECONDS = 900;

/**
 * Returns the files with which a run can be continued elsewhere: the workspace that its newest ended execution saved,
 * or none. A workspace may contain data that no transcript shows, so it is readable by callers that may continue the
 * run, not by every caller that may see it.
 *
 * Errors: run_not_found · not_authorized.
 */
export async function listHandoffFiles(
  deps: ListHandoffFilesDeps,
  caller: Caller,
  runUid: string,
): Promise<HandoffFile[]> {
  const run = requireRunVerb(caller, await deps.getVisibleRun(caller, runUid), "run.manage");
  const workspace = await deps.lastWorkspace(run.uid);
  if (!workspace) return [];
  const fileName = `workspace-${workspace.executionId}.tar`;
  const downloadUrl = await deps.blobs.signDownload(workspace.key, {
    expiresInSeconds: LINK_SECONDS,
    contentType: SNAPSHOT_TYPE,
    filename: fileName,
  });
  return [{ uid: workspace.uid, fileName, mimeType: SNAPSHOT_TYPE, downloadUrl }];
}
