import type { RunMode } from "./run.ts";

/** The mode that a message sets; "": the current mode is unchanged. */
export type MessageMode = RunMode | "";

export type MessageKind = "prompt" | "followup" | "children";

/** A file of a message. Its bytes are in the blob store. */
export type Attachment = {
  readonly uid: string;
  readonly fileName: string;
  readonly mimeType: string;
  readonly sizeBytes: number;
  readonly sha256: string;
};

/** A message to an agent: the prompt, a follow-up, or the ends of awaited children. */
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
  /** True if a person sent it, and not a run or a service in that person's name. */
  readonly isByPerson?: boolean;
  /** Id of the active execution that it is sent to; absent: the next accepted execution receives it. */
  readonly directiveTo?: number;
};
