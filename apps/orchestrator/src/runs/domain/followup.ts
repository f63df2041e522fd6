import { uidOf } from "@millwright/ids";
import { isTerminal, type RunState } from "./run.ts";
import type { LifecycleState } from "./run-state.ts";
import { isExecuting, isLive } from "./run-state.ts";

/** The published outcome of accepting a follow-up. */
export type FollowupOutcome = "live_session" | "queued_prompt" | "handoff_execution" | "queue_pending";

export type FollowupRoute = {
  readonly outcome: FollowupOutcome;
  /** input: the next execution receives it when it is accepted · directive: sent to the worker that leases the run. */
  readonly via: "input" | "directive";
  /** True if a further execution is queued for it. */
  readonly queuesExecution: boolean;
};

/** A follow-up and its outcome. */
export type Followup = {
  readonly uid: string;
  /** Its position among the messages of its run. */
  readonly seq: number;
  readonly text: string;
  readonly authorType: string;
  readonly authorUid: string;
  readonly createdAt: Date;
  /** When it was delivered to the agent. */
  readonly deliveredAt?: Date;
  /** Why it will never be delivered, such as run_cancelled: its run ended first. */
  readonly undeliverable?: string;
};

/** Returns the state of a follow-up. Every follow-up ends as delivered or undeliverable. */
export const followupState = ({ deliveredAt, undeliverable }: Followup): "queued" | "delivered" | "undeliverable" =>
  deliveredAt ? "delivered" : undeliverable ? "undeliverable" : "queued";

/**
 * Returns the route of a follow-up, by the state of its run. Every follow-up is delivered to an execution, or reported
 * as undeliverable when its run ends.
 */
export function routeFollowup(current: LifecycleState): FollowupRoute {
  if (current.execution === "DEBUG") return { outcome: "live_session", via: "directive", queuesExecution: false };
  if (current.run === "QUEUED" || current.run === "PENDING")
    return { outcome: "queued_prompt", via: "input", queuesExecution: false };
  if (current.run === "CLAIMED") return { outcome: "queue_pending", via: "directive", queuesExecution: false };
  if (current.run === "INPROGRESS") {
    return isExecuting(current.execution)
      ? { outcome: "live_session", via: "directive", queuesExecution: false }
      : { outcome: "queue_pending", via: "input", queuesExecution: !isLive(current.execution) }; // the run waits for children
  }
  return { outcome: "handoff_execution", via: "input", queuesExecution: true };
}

/** Returns whether a run waits for the approval of its plan. A user's follow-up without a mode approves the plan. */
export const isAwaitingApproval = ({
  state,
  statusMessage = "",
}: {
  readonly state: RunState;
  readonly statusMessage?: string;
}): boolean => state === "BLOCKED" && statusMessage.startsWith("awaiting_approval");

/**
 * Returns whether continuing a conversation after this state requires a new run. A BLOCKED run waits for an answer, so
 * a follow-up continues it.
 */
export const requiresNewRun = (state: RunState): boolean => isTerminal(state) && state !== "BLOCKED";

/**
 * Returns the uid of the message that continues a conversation. It is derived from the cause, so that a cause creates
 * at most one message.
 */
export const messageUidOf = (ownerUid: string, causeKey: string): string => uidOf(JSON.stringify([ownerUid, causeKey]));

/** Returns the submitted prompt, extended by a follow-up that was sent before the agent started. */
export const appendToPrompt = (prompt: string | undefined, message: string): string =>
  [prompt, message].filter(Boolean).join("\n\n");
