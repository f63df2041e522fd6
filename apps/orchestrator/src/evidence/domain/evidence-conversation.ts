import { publicStep, type Block, type Step } from "../../conversations/domain/conversation-view.ts";

/** Maximum size of a conversation as evidence, in bytes of UTF-8. It must fit into an attachment of a run. */
export const CONVERSATION_BYTES_MAX = 8 * 1024 * 1024;

/** Limits of each text, in characters; tried in this order until the document fits. */
const TEXT_LIMITS = [Number.POSITIVE_INFINITY, 65_536, 16_384, 4_096, 1_024, 256] as const;

/**
 * Returns the public conversation document as JSON text. If the document is too large, its long texts are cut first,
 * then messages in the middle of each step are left out. The document states both.
 */
export function conversationJson(
  conversationUid: string,
  steps: readonly Step[],
  bytesMax = CONVERSATION_BYTES_MAX,
): string {
  const write = (shown: readonly Step[], charactersMax: number): string =>
    JSON.stringify({ conversation_id: conversationUid, steps: shown.map(publicStep) }, (_key, value: unknown) =>
      typeof value === "string" ? cut(value, charactersMax) : value,
    );
  for (const limit of TEXT_LIMITS) {
    const json = write(steps, limit);
    if (Buffer.byteLength(json) <= bytesMax) return json;
  }
  for (let messagesMax = 4_096; ; messagesMax = Math.floor(messagesMax / 2)) {
    const json = write(
      steps.map((step) => shortened(step, messagesMax)),
      TEXT_LIMITS.at(-1)!,
    );
    if (messagesMax === 0 || Buffer.byteLength(json) <= bytesMax) return json;
  }
}

const cut = (text: string, charactersMax: number): string =>
  text.length <= charactersMax
    ? text
    : `${text.slice(0, charactersMax)}… (cut: the text has ${text.length} characters)`;

/** Returns the step with at most `messagesMax` messages: its first ones and its last ones. */
function shortened(step: Step, messagesMax: number): Step {
  const steps = step.steps.map((inner) => shortened(inner, messagesMax));
  if (step.messages.length <= messagesMax) return { ...step, steps };
  const half = Math.floor(messagesMax / 2);
  const left = step.messages.length - 2 * half;
  const at = step.messages[half]!.timestamp;
  const note = {
    role: "system" as const,
    content: [{ type: "text", text: `${left} messages are left out here.` }],
    timestamp: at,
    messageIds: [],
  };
  return {
    ...step,
    steps,
    messages: [...step.messages.slice(0, half), note, ...(half > 0 ? step.messages.slice(-half) : [])],
  };
}

/**
 * Returns the last text that the agent emitted in its own turns: a text, the message of `finish`, or a question.
 * Returns "" if there is none.
 */
export function finalMessage(steps: readonly Step[]): string {
  const blocks = steps.flatMap(({ messages }) =>
    messages
      .filter(({ role }) => role === "assistant" || role === "tool")
      .flatMap(({ role, content }) => content.map((block) => ({ role, block }))),
  );
  for (const { role, block } of blocks.toReversed()) {
    const text =
      role === "assistant"
        ? statedBy(block)
        : block["type"] === "action_result" && block["name"] === "finish"
          ? textAt(block["output"], "message")
          : "";
    if (text !== "") return text;
  }
  return "";
}

const statedBy = (block: Block): string =>
  block["type"] === "text" && typeof block["text"] === "string"
    ? block["text"]
    : block["type"] === "action" && block["name"] === "ask_user"
      ? textAt(block["input"], "question")
      : "";

const textAt = (value: unknown, key: string): string => {
  const text = typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  return typeof text === "string" ? text : "";
};
