import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { Run } from "../domain/run.ts";

/** A run, or the newest run of a conversation. */
export type RunTarget = { readonly runUid: string } | { readonly conversationUid: string };

export type RunTargetDeps = {
  /** Errors: run_not_found. */
  getVisibleRun(caller: Caller, uid: string): Promise<Run>;
  findNewestOfConversation(caller: Caller, conversationUid: string): Promise<Run | undefined>;
};

/** Errors: run_not_found · conversation_not_found. */
export async function findTarget(deps: RunTargetDeps, caller: Caller, target: RunTarget): Promise<Run> {
  if ("runUid" in target) return deps.getVisibleRun(caller, target.runUid);
  const run = await deps.findNewestOfConversation(caller, target.conversationUid);
  if (!run) throw notFound("conversation");
  return run;
}
