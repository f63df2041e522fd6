import type { ConversationEvent } from "./model-provider.ts";

/** Whether an event says that a call is to be done once more, whatever came of it before: its effect was lost with a workspace. */
export const isToRepeat = ({ kind, payload }: ConversationEvent, callId: string): boolean =>
  kind === "agent_resumed" && Array.isArray(payload["repeats"]) && payload["repeats"].includes(callId);
