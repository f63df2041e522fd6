import { textAt } from "../event-fields.ts";
import type { ConversationEvent } from "../model-provider.ts";
import { scriptedFences, type Fence } from "./fences.ts";
import { parseScript, type Step } from "./parse-script.ts";
import { ScriptError } from "./script-error.ts";

/** The current script. `id` is the prefix of its step ids and is the same in every attempt and execution. */
export type Script = { readonly id: string; readonly steps: readonly Step[] };

/** Uids are ordered by time, so their prefixes repeat and their suffixes do not. */
const ID_LENGTH = 8;
const BODY = "body";

/**
 * Returns the script: the block of the newest message that contains one. Otherwise, in the first turn and its
 * continuations, the block of the agent's own instructions. Several blocks in one text form one script. Messages of the
 * platform, such as those about ended child runs, are ignored. Throws `ScriptError` with a message that names the text
 * and the line.
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
