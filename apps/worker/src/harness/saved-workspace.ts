import type { ExecutionContext, ExecutionResult } from "../context/execution-context.ts";
import type { Workspace } from "../tools/tool.ts";
import { Checkpoints } from "../workspace/checkpoints.ts";
import type { Conversation } from "../conversation/conversation.ts";

/**
 * Returns where the final workspace is stored: in a snapshot, or nowhere because it equals fresh clones. Returns
 * neither if it could not be saved.
 */
export const savedWorkspace = (
  snapshotKey: string | undefined,
  { end }: Pick<Checkpoints, "end">,
): Pick<ExecutionResult, "snapshotKey" | "isWorkspaceUnchanged"> =>
  snapshotKey === undefined ? (end ? { isWorkspaceUnchanged: true } : {}) : { snapshotKey };

/** Saves the workspace of an execution whose sandbox ended too often. */
export const saveAfterCrash = (deps: {
  ctx: ExecutionContext;
  conversation: Conversation;
  workspace: Workspace;
}): Promise<string | undefined> =>
  new Checkpoints({ ...deps, isRestored: deps.ctx.assignment.snapshotUrl !== "" }).last();
