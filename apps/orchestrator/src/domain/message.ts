import type { RunMode } from "./run.ts";

export type MessageKind = "prompt" | "followup" | "children";

/** Something an agent is told: the prompt, a follow-up, the ends of awaited children. */
export type Message = { readonly uid: string; readonly kind: MessageKind; readonly text: string; readonly mode: RunMode };

export type NewMessage = Message & {
  readonly runUid: string;
  readonly author: { readonly type: string; readonly uid: string };
  /** Sent to the execution that runs now; absent: taken by the next one that is accepted. */
  readonly directiveTo?: number;
};
