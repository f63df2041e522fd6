import type { ConversationEvent } from "./model-provider.ts";

/**
 * Returns whether an event requires that a call is repeated, whatever its earlier result was, because the call's effect
 * was lost with a workspace.
 */
export const isToRepeat = ({ kind, payload }: ConversationEvent, callId: string): boolean =>
  kind === "agent_resumed" && Array.isArray(payload["repeats"]) && payload["repeats"].includes(callId);
