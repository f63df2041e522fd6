import type { Run } from "./run.ts";

/** What people may do by a link alone. */
export type LinkAccess = "view" | "take part";

const LEVELS: Readonly<Record<LinkAccess, readonly unknown[]>> = { view: ["VIEWER", "EDITOR"], "take part": ["EDITOR"] };

/**
 * The runs of a conversation, oldest first, that are open to people with its link: those of the newest one's owner, if that one's
 * `session_sharing` says so. Source: fields-runs §3.6.
 */
export function openRuns(runs: readonly Run[], access: LinkAccess): readonly Run[] {
  const newest = runs.at(-1);
  const sharing = newest?.agentConfig["session_sharing"] as { public_access?: unknown } | undefined;
  if (!newest || !LEVELS[access].includes(sharing?.public_access)) return [];
  return runs.filter(({ owner }) => owner.type === newest.owner.type && owner.uid === newest.owner.uid);
}
