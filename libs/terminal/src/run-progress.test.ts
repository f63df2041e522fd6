import { expect, test } from "@jest/globals";
import { describeRunEvent } from "./run-progress.ts";

const event = (kind: string, payload: Record<string, unknown>) => ({
  seq: 1,
  kind,
  occurred_at: "2026-01-01T00:00:00.000Z",
  payload,
});

test.each([
  ["run_claimed", { worker_host: "w1" }, { mark: "start", text: "claimed by worker w1" }],
  ["message", { role: "user", text: "hi" }, undefined],
  ["message", { role: "assistant", text: "hello" }, { mark: "say", text: "hello" }],
  [
    "tool_end",
    { name: "run_command", state: "completed", input: { command: "ls" }, output: { exit_code: 0, output: "a\nb\n" } },
    { mark: "work", text: "$ ls", detail: ["a", "b"] },
  ],
  [
    "tool_end",
    {
      name: "run_command",
      state: "completed",
      input: { command: "seq" },
      output: { exit_code: 0, output: "1\n2\n3\n4\n5\n6\n7\n8\n" },
    },
    { mark: "work", text: "$ seq", detail: ["[2 lines omitted]", "3", "4", "5", "6", "7", "8"] },
  ],
  [
    "tool_end",
    { name: "run_command", state: "completed", input: { command: "npm test" }, output: { exit_code: 1, output: "" } },
    { mark: "fail", text: "$ npm test  (exit 1)", detail: [] },
  ],
  [
    "tool_end",
    { name: "edit_files", state: "completed", output: { files: [{ path: "a.js" }] } },
    { mark: "work", text: "edited a.js" },
  ],
  [
    "tool_end",
    {
      name: "run_command",
      state: "completed",
      repeated: true,
      input: { command: "ls" },
      output: { exit_code: 0, output: "" },
    },
    { mark: "work", text: "$ ls (executed again)", detail: [] },
  ],
  [
    "worker_stopped",
    { reason: "worker_stopping" },
    { mark: "note", text: "the worker stops; the run continues on another one" },
  ],
  [
    "attempt_failed",
    { message: "No sandbox." },
    { mark: "fail", text: "the worker could not execute the run: No sandbox." },
  ],
  ["agent_resumed", { text: "The worker was lost.\n\nMore." }, { mark: "note", text: "The worker was lost." }],
  ["run_finished", { state: "FAILED", message: "no" }, { mark: "fail", text: "failed: no" }],
  [
    "run_finished",
    { state: "BLOCKED", message: "Which?\n\nA or B" },
    { mark: "fail", text: "blocked: Which? [2 more lines]" },
  ],
  [
    "debug_window_opened",
    { window_ms: 1_200_000 },
    { mark: "note", text: "debug window open for 20 min: follow-ups work in what the setup left" },
  ],
  ["message", { role: "assistant", text: "\u001b]0;owned\u0007hi\u202e" }, { mark: "say", text: "hi" }],
  ["something_new", {}, undefined],
  ["toString", {}, undefined],
])("%s %j is shown as %j", (kind, payload, expected) => {
  expect(describeRunEvent(event(kind, payload))).toEqual(expected);
});
