import type { TerminalState } from "../domain/run.ts";

const FINISHED = "finished:";

/** What a transaction announces for each run that ends in it (`Sql.announce`). */
export const finishedNews = (runUid: string, state: TerminalState): string => `${FINISHED}${state}:${runUid}`;

/** The state in such a piece of news. */
export const finishedState = (news: string): string | undefined =>
  news.startsWith(FINISHED) ? news.split(":")[1] : undefined;
