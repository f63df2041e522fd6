import { textAt } from "../event-fields.ts";
import type { ConversationEvent } from "../model-provider.ts";
import { scriptedFences, type Fence } from "./fences.ts";
import { parseScript, type Step } from "./parse-script.ts";
import { ScriptError } from "./script-error.ts";

/** The script in force. `id` is the beginning of its steps' ids: every attempt and execution comes to the same. */
export type Script = { readonly id: string; readonly steps: readonly Step[] };

/** Uids are ordered by time, so their beginnings repeat; their ends do not. */
const ID_LENGTH = 8;
const BODY = "body";

/**
 * Finds the script: the block of the newest message that has one; else that of the agent's own instructions, which serves the first turn only
 * (and what goes on from it). Several blocks in one text are one script. Platform-made messages, such as the ends of children, are no source.
 * Errors: ScriptError, its message naming text and line.
 */
export function chooseScript(events: readonly ConversationEvent[], agentPrompt: string): Script | undefined {
  const messages = events.filter(
    ({ kind, payload }) => kind === "message" && payload["role"] === "user" && payload["kind"] !== "children",
  );
  for (const { payload } of messages.toReversed()) {
    const script = scriptOf(textAt(payload, "text"), textAt(payload, "message_uid").slice(-ID_LENGTH), "the prompt");
    if (script) return script;
  }
  return isFirstTurn(events) ? scriptOf(agentPrompt, BODY, "the agent's instructions") : undefined;
}

function isFirstTurn(events: readonly ConversationEvent[]): boolean {
  const steps = events.filter(({ kind }) => kind === "model_step");
  return steps.length === 0 || steps.some(({ payload }) => textAt(payload, "step_id").startsWith(`${BODY}-`));
}

function scriptOf(text: string, id: string, where: string): Script | undefined {
  try {
    const fences: Fence[] = scriptedFences(text);
    return fences.length === 0 ? undefined : { id, steps: fences.flatMap(parseScript) };
  } catch (error) {
    if (error instanceof ScriptError)
      throw new ScriptError(
        error.line,
        error.column,
        `Line ${error.line}, column ${error.column} of ${where}: ${error.message}.`,
      );
    throw error;
  }
}
