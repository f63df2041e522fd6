import type { RunState } from "./run.ts";
import { isTerminal } from "./run.ts";

export type WaitPolicy = "all" | "any";

/** A child as its parent sees it. */
export type Child = {
  readonly uid: string;
  readonly title: string;
  readonly state: RunState;
  readonly message?: string;
};

/**
 * Whether a wait is over, and with which children's ends. A wait for nothing is over at once.
 * A BLOCKED child has ended: it needs somebody else, and its parent must hear of it.
 */
export function judgeWait(policy: WaitPolicy, awaited: readonly Child[]): { isOver: boolean; ended: readonly Child[] } {
  const ended = awaited.filter(({ state }) => isTerminal(state));
  const isOver = policy === "all" ? ended.length === awaited.length : ended.length > 0 || awaited.length === 0;
  return { isOver, ended };
}

/** What a waiting run shows. */
export const waitingMessage = (liveCount: number): string =>
  `Waiting for ${liveCount} child ${liveCount === 1 ? "run" : "runs"}.`;

/** What the parent's agent is told when its wait is over. */
export function childrenMessage(ended: readonly Child[]): string {
  if (ended.length === 0) return "There was no child run to wait for.";
  const lines = ended.map(
    ({ uid, title, state, message }) => `- ${uid} "${title}": ${state}${message ? ` – ${message}` : ""}`,
  );
  return ["Child runs have ended:", ...lines].join("\n");
}
