import type { worker } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import type { ExecutionContext } from "../context/execution-context.ts";
import { textAt } from "../model/event-fields.ts";
import { SandboxRefusal } from "../sandbox/sandbox-errors.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { AttachmentFailed, fetchAttachments } from "./attachments.ts";
import type { Conversation } from "./conversation.ts";
import { Inbox } from "./inbox.ts";

export type MessagesDeps = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly sandbox: () => Sandbox;
  /** The inbox with all messages so far; absent: a new inbox, which receives later ones. */
  readonly inbox?: Inbox;
};

/** Delivers messages into the conversation: first the inputs of the execution, then those that arrive while it runs. */
export class Messages {
  readonly inbox: Inbox;
  readonly #deps: MessagesDeps;
  #inputs: readonly worker.InputMessage[];
  #mode: string;

  constructor(deps: MessagesDeps) {
    const { ctx, conversation } = deps;
    this.#deps = deps;
    this.inbox = deps.inbox ?? new Inbox(ctx.directives);
    this.#inputs = ctx.assignment.inputs;
    const newest = conversation.events.findLast(
      ({ kind, payload }) => kind === "message" && payload["kind"] !== "children" && textAt(payload, "mode") !== "",
    );
    this.#mode = textAt(newest?.payload ?? {}, "mode") || ctx.assignment.mode;
  }

  /** Whether there are messages that the agent has not received. */
  get hasNewMessages(): boolean {
    return this.#inputs.length > 0 || this.inbox.hasMessages;
  }

  /**
   * Delivers new messages and returns the current mode. A message is acknowledged when the platform has stored it in
   * the run's events.
   */
  async take(): Promise<string> {
    const { ctx } = this.#deps;
    for (let input = this.#inputs[0]; input; input = this.#inputs[0]) {
      await this.#deliver(input);
      this.#inputs = this.#inputs.slice(1);
    }
    const delivered: bigint[] = [];
    for (let followup = this.inbox.next; followup; followup = this.inbox.next) {
      await this.#deliver(followup.message);
      this.inbox.drop(followup);
      delivered.push(followup.seq);
    }
    if (delivered.length > 0) await ctx.flushed();
    for (const seq of delivered) ctx.directives.ack(seq);
    return this.#mode;
  }

  /**
   * Fetches the files of earlier messages to their known paths, because a new sandbox lacks them and snapshots do not
   * contain them.
   */
  async fetchEarlierAttachments(): Promise<void> {
    for (const file of this.#deps.ctx.assignment.earlierAttachments)
      await this.#fetchAttachments({ attachments: [file] });
  }

  async #deliver(message: worker.InputMessage): Promise<void> {
    const { conversation } = this.#deps;
    const attachments = await this.#fetchAttachments(message);
    const payload = {
      role: "user",
      text: message.text,
      message_uid: message.uid,
      kind: message.kind,
      mode: message.mode,
      attachments: attachments.length > 0 ? attachments : undefined,
    };
    conversation.record("message", payload);
    if (message.mode !== "" && message.kind !== "children") this.#mode = message.mode;
  }

  /**
   * Fetches the attachments of a message. If one cannot be fetched, it records a warning and delivers the message
   * without them.
   */
  async #fetchAttachments(message: Pick<worker.InputMessage, "attachments">): Promise<string[]> {
    const { ctx, conversation, sandbox } = this.#deps;
    try {
      return await fetchAttachments(ctx, sandbox(), message);
    } catch (error) {
      // The attachment is too large, the disk is full, or its link has expired.
      const isMissing = error instanceof AttachmentFailed || error instanceof SandboxRefusal || isDomainError(error);
      if (ctx.signal.aborted || !isMissing) throw error;
      conversation.record("warning", { text: `An attachment could not be fetched: ${error.message}` });
      return [];
    }
  }
}
