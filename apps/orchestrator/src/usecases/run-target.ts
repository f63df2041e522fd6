import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { Run } from "../domain/run.ts";
import type { LinkAccess } from "../domain/session-sharing.ts";
import { requireRunVerb } from "./run-access.ts";

/** A run, or the newest run of a conversation. */
export type RunTarget = { readonly runUid: string } | { readonly conversationUid: string };

export type RunTargetDeps = {
  /** Errors: run_not_found. */
  getVisibleRun(caller: Caller, uid: string): Promise<Run>;
  findNewestOfConversation(caller: Caller, conversationUid: string): Promise<Run | undefined>;
};

export type ToldTargetDeps = RunTargetDeps & {
  /** Those that are open to a caller who has the conversation's link, oldest first. */
  listOpenRuns(caller: Caller, conversationUid: string, access: LinkAccess): Promise<readonly Run[]>;
};

/**
 * The run that a caller may tell something: one that they manage, or the newest of a conversation whose link lets them take part.
 *
 * Errors: run_not_found · conversation_not_found · not_authorized.
 */
export async function findToldTarget(deps: ToldTargetDeps, caller: Caller, target: RunTarget): Promise<Run> {
  const run = "runUid" in target ? await deps.getVisibleRun(caller, target.runUid) : await deps.findNewestOfConversation(caller, target.conversationUid);
  if (run) return requireRunVerb(caller, run, "run.manage");
  const open = "conversationUid" in target ? await deps.listOpenRuns(caller, target.conversationUid, "take part") : [];
  const newest = open.at(-1);
  if (!newest) throw notFound("conversation");
  return newest;
}

/** Errors: run_not_found · conversation_not_found. */
export async function findTarget(deps: RunTargetDeps, caller: Caller, target: RunTarget): Promise<Run> {
  if ("runUid" in target) return deps.getVisibleRun(caller, target.runUid);
  const run = await deps.findNewestOfConversation(caller, target.conversationUid);
  if (!run) throw notFound("conversation");
  return run;
}
