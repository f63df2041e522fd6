import { expect, test } from "@jest/globals";
import { Timeline, type RunEvent } from "./timeline.ts";

let seq = 0;
const event = (kind: string, payload: RunEvent["payload"]): RunEvent => ({
  seq: ++seq,
  uid: String(seq),
  kind,
  occurred_at: "2026-11-20T10:00:00.000Z",
  payload,
});
const timelineOf = (...events: RunEvent[]): Timeline => {
  const timeline = new Timeline();
  for (const each of events) timeline.add(each);
  return timeline;
};

test("merges the start, the output and the end of a tool call, with the input that the model sent", () => {
  const { items } = timelineOf(
    event("model_step", { step_id: "s", text: "", tool_calls: [{ call_id: "c", input: { old: "a", new: "b" } }] }),
    event("tool_start", { call_id: "c", name: "edit_files", category: "files", input: { files: [{ path: "x" }] } }),
    event("command_output", { call_id: "c", text: "one" }),
    event("command_output", { call_id: "c", text: " two" }),
    event("tool_end", { call_id: "c", name: "edit_files", state: "completed", output: { ok: 1 }, duration_ms: 5 }),
  );
  expect(items).toEqual([
    expect.objectContaining({
      kind: "tool",
      input: { old: "a", new: "b", files: [{ path: "x" }] },
      state: "completed",
      progress: "one two",
      output: { ok: 1 },
      durationMs: 5,
    }),
  ]);
});

test("ignores an event that it has seen, and shows an answer once that a harness sends twice", () => {
  const step = event("model_step", { step_id: "s", text: "Hello.", tool_calls: [] });
  const { items } = timelineOf(step, step, event("message", { role: "assistant", text: "Hello." }));
  expect(items.map((item) => item.kind === "message" && item.text)).toEqual(["Hello."]);
});

test("shows generated text until its step arrives, and repeats nothing of it", () => {
  const timeline = new Timeline();
  timeline.addText({ step_id: "s", offset: 0, text: "Hel" });
  timeline.addText({ step_id: "s", offset: 3, text: "lo" });
  timeline.addText({ step_id: "s", offset: 0, text: "Hel" });
  expect(timeline.live).toEqual({ stepId: "s", text: "Hello" });
  timeline.add(event("model_step", { step_id: "s", text: "Hello", tool_calls: [] }));
  expect([timeline.live, timeline.items.length]).toEqual([undefined, 1]);
});

test("knows whether the newest message states that the run has no model", () => {
  const without = event("model_step", { step_id: "no-script-0", text: "No AI.", tool_calls: [] });
  expect(timelineOf(without, event("status", {})).isWithoutModel).toBe(true);
  const answer = event("message", { role: "user", text: "Go on." });
  expect(timelineOf(without, answer).isWithoutModel).toBe(false);
});
