import { expect, test } from "@jest/globals";
import { describeRunEvent } from "./run-progress.ts";

const event = (kind: string, payload: Record<string, unknown>) => ({ seq: 1, kind, occurred_at: "2026-01-01T00:00:00.000Z", payload });

test.each([
  ["run_claimed", { worker_host: "w1" }, { mark: "start", text: "claimed by worker w1" }],
  ["message", { role: "user", text: "hi" }, undefined],
  ["message", { role: "assistant", text: "hello" }, { mark: "say", text: "hello" }],
  ["tool_end", { name: "run_command", state: "completed", input: { command: "ls" }, output: { exit_code: 0, output: "a\nb\n" } }, { mark: "work", text: "$ ls", detail: ["a", "b"] }],
  ["tool_end", { name: "run_command", state: "completed", input: { command: "npm test" }, output: { exit_code: 1, output: "" } }, { mark: "fail", text: "$ npm test  (exit 1)", detail: [] }],
  ["tool_end", { name: "edit_files", state: "completed", output: { files: [{ path: "a.js" }] } }, { mark: "work", text: "edited a.js" }],
  ["run_finished", { state: "FAILED", message: "no" }, { mark: "fail", text: "failed: no" }],
  ["something_new", {}, undefined],
])("%s %j is told as %j", (kind, payload, expected) => {
  expect(describeRunEvent(event(kind, payload))).toEqual(expected);
});
