import type { TerminalState } from "../domain/run.ts";

const FINISHED = "finished:";

/** Returns what a transaction announces for each run that becomes terminal in it (`Sql.announce`). */
export const finishedAnnouncement = (runUid: string, state: TerminalState): string => `${FINISHED}${state}:${runUid}`;

/** Returns the state in such an announcement, or undefined if the text is another announcement. */
export const finishedState = (announcement: string): string | undefined =>
  announcement.startsWith(FINISHED) ? announcement.split(":")[1] : undefined;
