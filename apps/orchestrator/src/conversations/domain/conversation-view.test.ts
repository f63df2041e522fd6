import { describe, expect, test } from "@jest/globals";
import type { RunUid } from "@millwright/ids";
import { publicStep, stepsOf, type ChildRun } from "./conversation-view.ts";
import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { JsonObject } from "../../runs/domain/run.ts";

/** Returns events in order, one second apart, with uids e1, e2 … */
const eventsOf = (...given: [RunEvent["kind"], JsonObject, Partial<RunEvent>?][]): RunEvent[] =>
  given.map(([kind, payload, over], n) => ({
    runUid: "r" as RunUid,
    seq: n + 1,
    uid: `e${n + 1}`,
    kind,
    occurredAt: new Date(n * 1000),
    isSuperseded: false,
    payload,
    ...over,
  }));
const shape = (events: RunEvent[], children: ChildRun[] = []) =>
  stepsOf(events, children).map((step) => ({
    id: step.id,
    messages: step.messages.map(({ role, content }) => [
      role,
      ...content.map((block) => block["text"] ?? block["name"]),
    ]),
    steps: step.steps.map(({ id }) => id),
  }));

const user = (text: string, uid = `m-${text}`): [RunEvent["kind"], JsonObject] => [
  "message",
  { role: "user", text, message_uid: uid },
];
const tool = (
  call: string,
  name: string,
  output: JsonObject = {},
  state = "completed",
): [RunEvent["kind"], JsonObject][] => [
  ["tool_start", { call_id: call, name, category: "command", input: { command: "x" } }],
  ["tool_end", { call_id: call, name, category: "command", state, output }],
];

test("a run whose agent received no message has no steps", () =>
  expect(stepsOf(eventsOf(["run_created", {}], ["run_claimed", {}]), [])).toEqual([]));

test("each user message begins a step; a response with its actions is one message, their results another", () =>
  expect(
    shape(
      eventsOf(
        user("do"),
        ["model_step", { text: "I will.", tool_calls: [] }],
        ...tool("c1", "run_command"),
        ["model_step", { text: "Done." }],
        ["turn_end", { outcome: "done" }],
        user("more"),
        ["model_step", { text: "" }],
        ...tool("c2", "grep"),
      ),
    ),
  ).toEqual([
    {
      id: "m-do",
      messages: [
        ["user", "do"],
        ["assistant", "I will.", "run_command"],
        ["tool", "run_command"],
        ["assistant", "Done."],
      ],
      steps: [],
    },
    {
      id: "m-more",
      messages: [
        ["user", "more"],
        ["assistant", "grep"],
        ["tool", "grep"],
      ],
      steps: [],
    },
  ]));

test("a text that is sent as a model step and as a message is shown once", () =>
  expect(
    shape(
      eventsOf(
        user("a"),
        ["model_step", { text: "Hello" }],
        ["message", { role: "assistant", text: "Hello" }],
        ["message", { role: "assistant", text: "Bye" }],
      ),
    )[0]?.messages,
  ).toEqual([
    ["user", "a"],
    ["assistant", "Hello"],
    ["assistant", "Bye"],
  ]));

test("a lost attempt leaves only the event of its loss", () =>
  expect(
    shape(
      eventsOf(
        ["message", { role: "user", text: "do", message_uid: "m" }, { isSuperseded: true }],
        ["model_step", { text: "half" }, { isSuperseded: true }],
        ["worker_lost", { worker_host: "w", reason: "lease_expired" }],
        user("do", "m"),
        ["model_step", { text: "whole" }],
      ),
    ),
  ).toEqual([
    {
      id: "m",
      messages: [
        ["system", "worker_lost"],
        ["user", "do"],
        ["assistant", "whole"],
      ],
      steps: [],
    },
  ]));

describe("child runs", () => {
  const child = (runUid: string): ChildRun => ({
    runUid,
    title: `title of ${runUid}`,
    summary: "ok",
    steps: stepsOf(eventsOf(user("child work")), []),
  });
  test("are nested in the step that created them, else in the last step", () => {
    const events = eventsOf(user("a"), ...tool("c1", "spawn_run", { run_id: "k1" }), user("b"));
    const steps = stepsOf(events, [child("k2"), child("k1")]);
    expect(steps.map((step) => step.steps.map(({ id }) => id))).toEqual([["k1"], ["k2"]]);
    expect(steps[0]?.steps[0]).toMatchObject({
      description: "title of k1",
      summary: "ok",
      messages: [{ role: "user" }],
    });
  });
});

test.each([
  ["completed", "completed"],
  ["failed", "failed"],
  ["denied", "denied"],
  ["interrupted", "failed"],
])("an action that ended %s has the published state %s", (state, expected) =>
  expect(publicStep(stepsOf(eventsOf(user("a"), ...tool("c", "n", {}, state)), [])[0]!)).toMatchObject({
    messages: [
      {},
      {},
      {
        role: "tool",
        content: [{ type: "action_result", action_id: "c", category: "command", name: "n", state: expected }],
      },
    ],
  }),
);

test("the public form has every published field", () =>
  expect(publicStep(stepsOf(eventsOf(user("a"), ["model_step", { text: "b" }]), [])[0]!)).toEqual({
    id: "m-a",
    messages: [
      {
        role: "user",
        content: [{ type: "text", text: "a", message_id: "e1" }],
        timestamp: "1970-01-01T00:00:00.000Z",
        message_ids: ["e1"],
      },
      {
        role: "assistant",
        content: [{ type: "text", text: "b", message_id: "e2" }],
        timestamp: "1970-01-01T00:00:01.000Z",
        message_ids: ["e2"],
      },
    ],
    steps: [],
    started_at: "1970-01-01T00:00:00.000Z",
    completed_at: "1970-01-01T00:00:01.000Z",
  }));
