import type { ReactNode } from "react";
import type { components } from "../gen/api.ts";

export type RunState = components["schemas"]["RunState"];

const LOOKS: Readonly<Record<RunState, readonly [look: string, text: string]>> = {
  QUEUED: ["", "Queued"],
  PENDING: ["busy", "Pending"],
  CLAIMED: ["busy", "Claimed"],
  INPROGRESS: ["busy", "In progress"],
  BLOCKED: ["wait", "Blocked"],
  SUCCEEDED: ["good", "Succeeded"],
  FAILED: ["bad", "Failed"],
  ERROR: ["bad", "Error"],
  CANCELLED: ["", "Cancelled"],
};

export const RUN_STATES = Object.keys(LOOKS) as RunState[];
export const stateText = (state: RunState): string => LOOKS[state][1];
/** Returns whether a run in this state has ended. A follow-up can continue it. */
export const isTerminal = (state: RunState): boolean => /^(?:SUCCEEDED|FAILED|ERROR|CANCELLED)$/.test(state);

/** The state of a run. */
export function StateBadge({ state }: { state: RunState }): ReactNode {
  const [look, text] = LOOKS[state];
  return <span className={`badge ${look}`}>{text}</span>;
}
