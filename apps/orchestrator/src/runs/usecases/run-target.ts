import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { Run } from "../domain/run.ts";
import type { ListSharedRuns } from "../domain/session-sharing.ts";
import { hasRunVerb, requireRunVerb } from "./run-access.ts";

/** A run, or the newest run of a conversation. */
export type RunTarget = { readonly runUid: string } | { readonly conversationUid: string };

export type RunTargetDeps = {
  /** Errors: run_not_found. */
  getVisibleRun(caller: Caller, uid: string): Promise<Run>;
  findNewestOfConversation(caller: Caller, conversationUid: string): Promise<Run | undefined>;
};

export type MessageTargetDeps = RunTargetDeps & { readonly listSharedRuns: ListSharedRuns };

/**
 * Returns the run to which a caller may send messages: a run that the caller manages, or the newest run of a
 * conversation whose link permits taking part.
 *
 * Errors: run_not_found · conversation_not_found · not_authorized.
 */
export async function findMessageTarget(deps: MessageTargetDeps, caller: Caller, target: RunTarget): Promise<Run> {
  if ("runUid" in target) return requireRunVerb(caller, await deps.getVisibleRun(caller, target.runUid), "run.manage");
  const run = await deps.findNewestOfConversation(caller, target.conversationUid);
  if (run && hasRunVerb(caller, run, "run.manage")) return run;
  const newest = (await deps.listSharedRuns(caller, target.conversationUid, "take part")).at(-1);
  if (newest) return newest;
  if (!run) throw notFound("conversation");
  return requireRunVerb(caller, run, "run.manage");
}

/** Returns the run of a target if the caller may see it. Errors: run_not_found · conversation_not_found. */
export async function findTarget(deps: RunTargetDeps, caller: Caller, target: RunTarget): Promise<Run> {
  if ("runUid" in target) return deps.getVisibleRun(caller, target.runUid);
  const run = await deps.findNewestOfConversation(caller, target.conversationUid);
  if (!run) throw notFound("conversation");
  return run;
}
