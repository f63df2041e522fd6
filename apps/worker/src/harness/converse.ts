import type { JsonObject } from "@bufbuild/protobuf";
import type { worker } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import { SandboxRefusal } from "../sandbox/channel.ts";
import type { TurnEnd } from "../tools/tool.ts";
import { AttachmentFailed, bringAttachments } from "./attachments.ts";
import { Inbox } from "./inbox.ts";
import { WAITING_FOR_INPUT } from "./result.ts";
import { runTurn, type TurnDeps } from "./turn.ts";

/**
 * The turns of one execution. After an interrupt, and always in an interactive run, it stays idle for the next message for a while; a message
 * that came as a turn was ending is still answered here. Errors: as `runTurn`.
 */
export async function converse(deps: Omit<TurnDeps, "takeMessages">): Promise<TurnEnd> {
  const { ctx, conversation } = deps;
  const inbox = new Inbox(ctx.directives);
  const messages = new Messages(deps, inbox);
  for (;;) {
    const end = await runTurn({ ...deps, takeMessages: () => messages.take() }, inbox.beginTurn());
    conversation.record("turn_end", { outcome: end.kind, ...(end.kind === "failed" ? { error: { ...end.failure } } : {}) });
    if (end.kind === "failed" || end.kind === "waiting") return end;
    if (inbox.hasMessages) continue;
    const staysIdle = end.kind === "interrupted" || (end.kind === "done" && ctx.assignment.interactive);
    if (!staysIdle) return end;
    ctx.phase("IDLE");
    if ((await inbox.idle(ctx.assignment.idleTimeoutSeconds * 1_000, ctx.signal)) === "end") return { kind: "blocked", message: WAITING_FOR_INPUT };
    ctx.phase("RUNNING");
  }
}

/** What people say, on its way into the conversation: first the inputs of the execution, then what comes while it runs. */
class Messages {
  readonly #deps: Omit<TurnDeps, "takeMessages">;
  readonly #inbox: Inbox;
  #inputs: readonly worker.InputMessage[];
  #mode: string;

  constructor(deps: Omit<TurnDeps, "takeMessages">, inbox: Inbox) {
    this.#deps = deps;
    this.#inbox = inbox;
    this.#inputs = deps.ctx.assignment.inputs;
    this.#mode = deps.ctx.assignment.mode;
  }

  /** Hands over what is new and answers the mode that holds now. A message is acknowledged when the platform has it in the run's events. */
  async take(): Promise<string> {
    const { ctx } = this.#deps;
    for (const input of this.#inputs) await this.#hand(input);
    this.#inputs = [];
    const followups = this.#inbox.take();
    for (const { message } of followups) await this.#hand(message);
    if (followups.length > 0) await ctx.flushed();
    for (const { seq } of followups) ctx.directives.ack(seq);
    return this.#mode;
  }

  async #hand(message: worker.InputMessage): Promise<void> {
    const { conversation } = this.#deps;
    const attachments = await this.#bring(message);
    const payload: JsonObject = { role: "user", text: message.text, message_uid: message.uid, kind: message.kind, ...(attachments.length > 0 ? { attachments } : {}) };
    conversation.record("message", payload);
    if (message.mode !== "" && message.kind !== "children") this.#mode = message.mode;
  }

  /** What cannot be had is said; the message itself still counts. */
  async #bring(message: worker.InputMessage): Promise<string[]> {
    const { ctx, conversation, tools } = this.#deps;
    try {
      return await bringAttachments(ctx, tools.workspace.sandbox, message);
    } catch (error) {
      const isMissing = error instanceof AttachmentFailed || error instanceof SandboxRefusal || isDomainError(error); // too large, no place for it, or its link has expired
      if (ctx.signal.aborted || !isMissing) throw error;
      conversation.record("warning", { text: `An attachment could not be had: ${error.message}` });
      return [];
    }
  }
}
