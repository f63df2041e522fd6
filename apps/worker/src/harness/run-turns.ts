import type { ExecutionContext } from "../context/execution-context.ts";
import type { TurnEnd } from "../tools/tool.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Messages } from "../conversation/messages.ts";
import type { Resumption } from "./resumption.ts";
import { WAITING_FOR_INPUT } from "./result.ts";
import { turnEndPayload } from "../tools/turn-end.ts";

/**
 * Runs the turns of one execution. After an interrupt, and always in an interactive run, it stays idle for a while and
 * waits for the next message. A message that arrives while a turn is ending is still handled by this execution. `past`:
 * the last turn of a lost attempt, ended or open. Throws the errors of `runTurn`.
 */
export async function runTurns(deps: RunTurnsDeps, past?: Past): Promise<TurnEnd> {
  const { ctx, conversation, messages } = deps;
  const { inbox } = messages;
  for (let known = past && knownEnd(past, messages); ; known = undefined) {
    const end = known ?? (await deps.runTurn(inbox.beginTurn()));
    if (conversation.events.findLast(({ kind }) => TURN_KINDS.includes(kind))?.kind !== "turn_end")
      conversation.record("turn_end", turnEndPayload(end));
    if (end.kind === "interrupted") await ctx.flushed();
    inbox.endTurn();
    if (end.kind === "failed" || end.kind === "waiting") return end;
    if (messages.hasNewMessages) continue;
    const staysIdle = end.kind === "interrupted" || (end.kind === "done" && ctx.assignment.interactive);
    if (!staysIdle) return end;
    ctx.phase("IDLE");
    if ((await inbox.idle(ctx.assignment.idleTimeoutSeconds * 1_000, ctx.signal)) === "end")
      return { kind: "blocked", message: WAITING_FOR_INPUT };
    ctx.phase("RUNNING");
  }
}

export type Past = Pick<Resumption, "end" | "isInTurn">;

/** Returns how the turn of a lost attempt ended or ends now; undefined if it continues or a new turn starts. */
function knownEnd({ end, isInTurn }: Past, { inbox, hasNewMessages }: Messages): TurnEnd | undefined {
  if (isInTurn) return inbox.isInterrupted ? { kind: "interrupted" } : undefined;
  if (end) inbox.endTurn(); // a pending interrupt belongs to the ended turn
  return hasNewMessages ? undefined : end;
}

export type RunTurnsDeps = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly messages: Messages;
  /** Runs one turn: delivers new messages and returns how the turn ended. */
  readonly runTurn: (interrupted: AbortSignal) => Promise<TurnEnd>;
};

const TURN_KINDS: readonly string[] = ["message", "model_step", "tool_end", "turn_end"];
