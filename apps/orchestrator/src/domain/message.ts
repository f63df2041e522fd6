import type { RunMode } from "./run.ts";

/** The mode that a message sets; "": the mode in effect is unchanged. */
export type MessageMode = RunMode | "";

export type MessageKind = "prompt" | "followup" | "children";

/** A file that comes with a message; its bytes are in the blob store. */
export type Attachment = {
  readonly uid: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly sha256: string;
};

/** Something an agent is told: the prompt, a follow-up, the ends of awaited children. */
export type Message = {
  readonly uid: string;
  readonly kind: MessageKind;
  readonly text: string;
  readonly mode: MessageMode;
  readonly attachments: readonly Attachment[];
};

export type NewMessage = Omit<Message, "attachments"> & {
  readonly attachments?: readonly Attachment[];
  readonly runUid: string;
  readonly author: { readonly type: string; readonly uid: string };
  /** Whether a person sent it, and not a run or a service in that person's name. */
  readonly isByPerson?: boolean;
  /** Sent to the execution that runs now; absent: taken by the next one that is accepted. */
  readonly directiveTo?: number;
};
