import type { Caller } from "@millwright/caller";
import type { Run } from "./run.ts";

/** The access that the link to a conversation alone gives to a user. */
export type LinkAccess = "view" | "take part";

const LEVELS: Readonly<Record<LinkAccess, readonly unknown[]>> = {
  view: ["VIEWER", "EDITOR"],
  "take part": ["EDITOR"],
};

/** Returns the runs of a conversation that are shared with a caller who has its link, oldest first. */
export type ListSharedRuns = (caller: Caller, conversationUid: string, access: LinkAccess) => Promise<readonly Run[]>;

/**
 * Returns whether a conversation is shared with users who have its link. The argument is the newest run of the
 * conversation's owner; its `session_sharing` applies to all runs of that owner in the conversation.
 */
export function isOpen({ agentConfig }: Run, access: LinkAccess): boolean {
  const sharing = agentConfig["session_sharing"] as { public_access?: unknown } | undefined;
  return LEVELS[access].includes(sharing?.public_access);
}
