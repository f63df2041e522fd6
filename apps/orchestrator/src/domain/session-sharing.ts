import type { Caller } from "@millwright/caller";
import type { Run } from "./run.ts";

/** What people may do by a link alone. */
export type LinkAccess = "view" | "take part";

const LEVELS: Readonly<Record<LinkAccess, readonly unknown[]>> = {
  view: ["VIEWER", "EDITOR"],
  "take part": ["EDITOR"],
};

/** The runs of a conversation that are open to a caller who has its link, oldest first. */
export type ListOpenRuns = (caller: Caller, conversationUid: string, access: LinkAccess) => Promise<readonly Run[]>;

/** Whether the newest run that its owner has in a conversation opens it to people with its link: its owner's runs, by its `session_sharing`. Source: fields-runs §3.6. */
export function isOpen({ agentConfig }: Run, access: LinkAccess): boolean {
  const sharing = agentConfig["session_sharing"] as { public_access?: unknown } | undefined;
  return LEVELS[access].includes(sharing?.public_access);
}
