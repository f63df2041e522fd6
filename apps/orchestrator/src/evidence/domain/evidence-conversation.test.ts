import { expect, test } from "@jest/globals";
import { conversationJson, finalMessage } from "./evidence-conversation.ts";
import type { Message, Step } from "../../conversations/domain/conversation-view.ts";

const AT = new Date("2026-11-20T10:00:00Z");
const message = (role: Message["role"], ...content: Message["content"]): Message => ({
  role,
  content,
  timestamp: AT,
  messageIds: [],
});
const text = (value: string) => ({ type: "text", text: value });
const step = (...messages: Message[]): Step => ({ id: "s", messages, steps: [] });

test.each<[string, Step[], string]>([
  [
    "the last text of the agent",
    [
      step(message("assistant", text("First."))),
      step(
        message("assistant", text("Last.")),
        message("tool", { type: "action_result", name: "run_command", output: { output: "x" } }),
      ),
    ],
    "Last.",
  ],
  [
    "the message of finish after it",
    [
      step(
        message("assistant", text("Before.")),
        message("tool", { type: "action_result", name: "finish", output: { message: "Finished." } }),
      ),
    ],
    "Finished.",
  ],
  [
    "a question",
    [step(message("assistant", { type: "action", name: "ask_user", input: { question: "Which?" } }))],
    "Which?",
  ],
  ["nothing when only people spoke", [step(message("user", text("Do it.")))], ""],
])("the final message is %s", (_what, steps, expected) => expect(finalMessage(steps)).toBe(expected));

test("long texts are cut only when the whole document is too large", () => {
  const steps = [step(message("assistant", text("a".repeat(50_000)), text("b".repeat(100))))];
  expect(JSON.parse(conversationJson("c", steps, 60_000)).steps[0].messages[0].content[0].text).toHaveLength(50_000);
  const [long, short] = JSON.parse(conversationJson("c", steps, 20_000)).steps[0].messages[0].content;
  expect([long.text, short.text]).toEqual([
    `${"a".repeat(16_384)}… (cut: the text has 50000 characters)`,
    "b".repeat(100),
  ]);
});

test("omits messages in the middle of long steps and states their number", () => {
  const steps = [step(...Array.from({ length: 20_000 }, (_one, n) => message("assistant", text(`message ${n}`))))];
  const json = conversationJson("c", steps, 300_000);
  const { messages } = JSON.parse(json).steps[0];
  expect(Buffer.byteLength(json)).toBeLessThanOrEqual(300_000);
  expect([messages[0].content[0].text, messages.at(-1).content[0].text]).toEqual(["message 0", "message 19999"]);
  expect(json).toMatch(/\d+ messages are left out here\./);
});
