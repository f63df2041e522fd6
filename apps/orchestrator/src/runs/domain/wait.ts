import type { RunState } from "./run.ts";
import { isTerminal } from "./run.ts";

export type WaitPolicy = "all" | "any";

/** A child run as reported to its parent. */
export type Child = {
  readonly uid: string;
  readonly title: string;
  readonly state: RunState;
  readonly message?: string;
};

/**
 * Returns whether a wait has ended, and the children that have ended. A wait for no children ends at once. A BLOCKED
 * child counts as ended: it needs an answer, so its parent must be notified.
 */
export function evaluateWait(
  policy: WaitPolicy,
  awaited: readonly Child[],
): { isComplete: boolean; ended: readonly Child[] } {
  const ended = awaited.filter(({ state }) => isTerminal(state));
  const isComplete = policy === "all" ? ended.length === awaited.length : ended.length > 0 || awaited.length === 0;
  return { isComplete, ended };
}

/** Returns the status message of a waiting run. */
export const waitingMessage = (liveCount: number): string =>
  `Waiting for ${liveCount} child ${liveCount === 1 ? "run" : "runs"}.`;

/** Returns the message to the parent's agent when its wait has ended. */
export function childrenMessage(ended: readonly Child[]): string {
  if (ended.length === 0) return "There was no child run to wait for.";
  const lines = ended.map(
    ({ uid, title, state, message }) => `- ${uid} "${title}": ${state}${message ? ` – ${message}` : ""}`,
  );
  return ["Child runs have ended:", ...lines].join("\n");
}
