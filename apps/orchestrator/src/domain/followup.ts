import { uidOf } from "@millwright/ids";
import { isTerminal, type RunState } from "./run.ts";
import type { Life } from "./run-state.ts";
import { isHeld, isLive } from "./run-state.ts";

/** What became of a follow-up (fields-runs §6.12). */
export type FollowupOutcome = "live_session" | "queued_prompt" | "handoff_execution" | "queue_pending";

export type FollowupRoute = {
  readonly outcome: FollowupOutcome;
  /** input: taken by the next execution when it is accepted · directive: sent to the worker that holds the run. */
  readonly via: "input" | "directive";
  /** A further execution is queued for it. */
  readonly wakes: boolean;
};

/** A follow-up and its one fate. */
export type Followup = {
  readonly uid: string;
  /** Its place among the messages of its run. */
  readonly seq: number;
  readonly text: string;
  readonly authorType: string;
  readonly authorUid: string;
  readonly createdAt: Date;
  /** When the agent was handed it. */
  readonly deliveredAt?: Date;
  /** Why the agent will never see it: its run ended first, such as run_cancelled. */
  readonly undeliverable?: string;
};

/** Where a follow-up stands; every one ends as delivered or undeliverable. */
export const followupState = ({ deliveredAt, undeliverable }: Followup): "queued" | "delivered" | "undeliverable" =>
  deliveredAt ? "delivered" : undeliverable ? "undeliverable" : "queued";

/** Routes a follow-up by the state of its run. Every one is taken by an execution, or reported undelivered when its run ends. */
export function routeFollowup(life: Life): FollowupRoute {
  if (life.execution === "DEBUG") return { outcome: "live_session", via: "directive", wakes: false };
  if (life.run === "QUEUED" || life.run === "PENDING") return { outcome: "queued_prompt", via: "input", wakes: false };
  if (life.run === "CLAIMED") return { outcome: "queue_pending", via: "directive", wakes: false };
  if (life.run === "INPROGRESS") {
    return isHeld(life.execution)
      ? { outcome: "live_session", via: "directive", wakes: false }
      : { outcome: "queue_pending", via: "input", wakes: !isLive(life.execution) }; // it waits for children
  }
  return { outcome: "handoff_execution", via: "input", wakes: true };
}

/** Whether a run waits for the approval of its plan; a person's answer without a mode approves it (fields-runs §3.1 AgentRunMode). */
export const isAwaitingApproval = ({
  state,
  statusMessage = "",
}: {
  readonly state: RunState;
  readonly statusMessage?: string;
}): boolean => state === "BLOCKED" && statusMessage.startsWith("awaiting_approval");

/** Whether going on with a conversation takes a new run: one that is BLOCKED waits for an answer. */
export const isOver = (state: RunState): boolean => isTerminal(state) && state !== "BLOCKED";

/** The message that goes on with a conversation has its uid of the cause, so that there is one for ever. */
export const messageUidOf = (ownerUid: string, causeKey: string): string => uidOf(JSON.stringify([ownerUid, causeKey]));

/** The submitted prompt with a follow-up that was sent before the start (fields-runs §6.3). */
export const appendToPrompt = (prompt: string | undefined, message: string): string =>
  [prompt, message].filter(Boolean).join("\n\n");
