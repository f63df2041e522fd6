import { describe, expect, test } from "@jest/globals";
import type { ConversationEvent } from "../model/model-provider.ts";
import { resumptionOf } from "./resumption.ts";

const asked: ConversationEvent = {
  kind: "model_step",
  payload: { step_id: "s-1", text: "", tool_calls: [{ call_id: "s-1", name: "spawn_run", input: {} }] },
};
const start: ConversationEvent = { kind: "tool_start", payload: { call_id: "s-1" } };
const end = (state: string): ConversationEvent => ({
  kind: "tool_end",
  payload: { call_id: "s-1", state, output: {} },
});
const turnEnd: ConversationEvent = { kind: "turn_end", payload: { outcome: "interrupted" } };
const resumed = (...repeats: string[]): ConversationEvent => ({ kind: "agent_resumed", payload: { repeats } });

describe("a call, as the next attempt finds it,", () => {
  test.each<[string, ConversationEvent[], { state: string; isClosed: boolean }]>([
    ["that was not started is requested", [], { state: "requested", isClosed: false }],
    ["that was running has begun", [start], { state: "running", isClosed: false }],
    ["that did its work is done", [start, end("completed")], { state: "done", isClosed: true }],
    [
      "that a stopping worker interrupted counts as running, although its end is recorded",
      [start, end("interrupted")],
      { state: "running", isClosed: true },
    ],
    [
      "that somebody interrupted, with its turn, is done",
      [start, end("interrupted"), turnEnd],
      { state: "done", isClosed: true },
    ],
    [
      "that a resumed agent was informed of is done",
      [start, end("interrupted"), resumed()],
      { state: "done", isClosed: true },
    ],
    [
      "that is to be repeated is asked for again",
      [start, end("interrupted"), resumed("s-1")],
      { state: "requested", isClosed: false },
    ],
  ])("%s", (_what, events, expected) => {
    expect(resumptionOf([asked, ...events], [{ name: "spawn_run", changes: "nothing" }]).calls).toMatchObject([
      expected,
    ]);
  });
});
