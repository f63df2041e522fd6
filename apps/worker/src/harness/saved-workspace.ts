import { bestEffort } from "@millwright/errors";
import type { ExecutionContext, ExecutionResult, LastSave } from "../context/execution-context.ts";
import type { Checkpoints } from "../workspace/checkpoints.ts";
import type { Conversation } from "../conversation/conversation.ts";

export type SavedWorkspace = Pick<ExecutionResult, "snapshotKey" | "isWorkspaceUnchanged">;

/**
 * Returns where the final workspace is stored: in a snapshot, or nowhere because it equals fresh clones. Returns
 * neither if it could not be saved.
 */
export const savedWorkspace = (snapshotKey: string | undefined, { end }: Pick<Checkpoints, "end">): SavedWorkspace =>
  snapshotKey === undefined ? (end ? { isWorkspaceUnchanged: true } : {}) : { snapshotKey };

export type SavedDeps = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly checkpoints: Checkpoints;
};

/** Saves the workspace of an execution whose sandbox ended too often. Returns its snapshot key. Never rejects. */
export async function saveAfterCrash({
  ctx,
  checkpoints,
}: Omit<SavedDeps, "conversation">): Promise<string | undefined> {
  let snapshotKey: string | undefined;
  await bestEffort("save the workspace of a sandbox that died", ctx.log, async () => {
    snapshotKey = await checkpoints.last();
  });
  return snapshotKey;
}

/**
 * Saves the workspace of a stopped execution, including the changes of the step that was interrupted. Returns where it
 * is stored; nothing if it could not be saved in time, which the run's events then state. Never rejects.
 */
export async function saveAfterStop(
  { ctx, conversation, checkpoints }: SavedDeps,
  means: LastSave,
): Promise<SavedWorkspace> {
  let saved: SavedWorkspace | undefined;
  await bestEffort("save the workspace of a stopped execution", ctx.log, async () => {
    saved = savedWorkspace(await checkpoints.last(means), checkpoints);
  });
  if (!saved && means.signal.aborted)
    conversation.record("warning", {
      text: "The workspace could not be saved in the time that a stopped execution has.",
    });
  return saved ?? {};
}
