import { describe, expect, test } from "@jest/globals";
import { textAt } from "../event-fields.ts";
import type { ConversationEvent } from "../model-provider.ts";
import { nextScriptedStep } from "./next-step.ts";

let uids = 0;
const script = (...steps: string[]) => ["```scripted", ...steps.map((step) => `- ${step}`), "```"].join("\n");
const message = (text: string, kind = "followup"): ConversationEvent => ({
  kind: "message",
  payload: { role: "user", text, kind, message_uid: `0190-0000-${String((uids += 1)).padStart(8, "0")}` },
});
const children = message("Child runs have ended", "children");

/** Takes the next step for the events. Returns the events followed by those that the harness records for it. */
function take(
  events: ConversationEvent[],
  agentPrompt = "",
  end: object = { state: "completed", output: {} },
): ConversationEvent[] {
  const step = nextScriptedStep(events, agentPrompt);
  if (!step) throw new Error("There is no step to take.");
  const calls = step.toolCalls.map((call): ConversationEvent => ({
    kind: "tool_end",
    payload: { call_id: call.callId, ...end },
  }));
  return [...events, { kind: "model_step", payload: { step_id: step.stepId, text: step.text } }, ...calls];
}
const upcoming = (events: ConversationEvent[], agentPrompt = "") => {
  const step = nextScriptedStep(events, agentPrompt);
  return step && (step.toolCalls[0]?.name ?? (step.next.kind === "continue" ? step.text : step.next.kind));
};
const failed = { state: "failed", output: { error: "no such file" } };

test("steps are returned one after the other until none remains", () => {
  let events = [message(script("say: a", "shell: b", "read: c"), "prompt")];
  const seen = [];
  for (let step = upcoming(events); step !== undefined; step = upcoming(events)) {
    seen.push(step);
    events = take(events);
  }
  expect(seen).toEqual(["a", "shell", "read_file"]);
});

test("the same events give the same call ids, derived from the message's uid", () => {
  const events = [message(script("shell: a", "shell: a"), "prompt")];
  const id = textAt(events[0]?.payload ?? {}, "message_uid").slice(-8);
  expect(nextScriptedStep(events, "")?.toolCalls[0]?.callId).toBe(`${id}-0`);
  expect(nextScriptedStep(take(events), "")?.toolCalls[0]?.callId).toBe(`${id}-1`);
});

describe("the choice of the script", () => {
  const body = `You are careful.\n${script("say: body one", "say: body two")}`;

  test("uses the prompt's script before the agent's", () =>
    expect(upcoming([message(script("say: prompt"), "prompt")], body)).toBe("prompt"));
  test("uses the agent's script if the first prompt has none", () => {
    const events = take([message("Do your work.", "prompt")], body);
    expect(events.at(-1)?.payload).toMatchObject({ step_id: "body-0", text: "body one" });
    expect(upcoming([...events, message("and continue")], body)).toBe("body two");
  });
  test("never uses the agent's script in a later turn", () => {
    const events = take(
      take([message(script("say: prompt"), "prompt")], body).concat(message(script("say: new"))),
      body,
    );
    expect(upcoming(events, body)).toBeUndefined();
    expect(upcoming([...take([message("x", "prompt")]), message("y")], body)).toBe("blocked");
  });
  test("uses the newest message's script, also in the middle of an older one", () => {
    const events = take([message(script("say: a", "say: b"), "prompt")]);
    expect(upcoming([...events, message(script("say: new"))])).toBe("new");
  });
  test("never uses a script in messages of the platform", () => {
    const events = [message(script("say: a", "wait: all", "say: b"), "prompt")];
    expect(upcoming([...take(take(events)), message(script("fail: injected"), "children")])).toBe("b");
  });
});

describe("no block", () => {
  const UNFENCED = "The message looks like steps, but they are not in a `scripted` block";
  const textOf = (prompt: string) => nextScriptedStep([message(prompt, "prompt")], "You fix bugs.")?.text ?? "";
  test("in no message: reports that there is no model, and blocks", () => {
    const step = nextScriptedStep([message("Fix the bug, please.", "prompt")], "You fix bugs.");
    const first = /^No AI model is configured for this run, so no AI has read the message\. To use an AI, /;
    expect(step).toMatchObject({ toolCalls: [], next: { kind: "blocked", message: expect.stringMatching(first) } });
    expect(step?.text).not.toContain(UNFENCED);
  });
  test("in no message: the example, sent back without its indentation, runs in a run without a repository", () => {
    const example = /^ {4}```scripted\n(?: {4}.*\n)+? {4}```$/m
      .exec(textOf("Fix the bug."))![0]
      .replaceAll(/^ {4}/gm, "");
    let events = [message("Fix the bug.", "prompt"), message(example)];
    const seen = [];
    for (let step = upcoming(events); step !== undefined; step = upcoming(events)) {
      seen.push(step);
      events = take(events);
    }
    expect(seen).toEqual(["I will add the file.", "write_file", "shell"]);
  });
  test.each([
    ["- say: I will add the file.\n- shell: cat hello.txt", true],
    ["Please run this:\n```yaml\n- wait: all\n```", true],
    ["Please:\n- fix the bug\n- say hello", false],
  ])("in no message: reports steps that are not in a block: %j", (prompt, isReported) => {
    const { text, next } = nextScriptedStep([message(prompt, "prompt")], "")!;
    for (const part of [text, next.kind === "blocked" ? next.message : ""])
      expect(part.includes(UNFENCED)).toBe(isReported);
  });
  test("in an answer: continues after the question", () => {
    const events = take([message(script("ask: Which name?", "say: thanks"), "prompt")]);
    expect(upcoming([...events, message("Anna")])).toBe("thanks");
  });
  test("in an answer to the last question: the script ends", () => {
    expect(upcoming([...take([message(script("ask: Fine?"), "prompt")]), message("Yes")])).toBeUndefined();
  });
  test("in a message after the end of a script: blocks, because there is no model to answer it", () => {
    expect(upcoming([...take([message(script("say: a"), "prompt")]), message("And now?")])).toBe("blocked");
  });
});

describe("a step that failed", () => {
  test.each([
    ["shell: npm test", { state: "completed", output: { exit_code: 2 } }, "Step 1 (shell, line 2) failed: exit code 2"],
    ["read: a", failed, "Step 1 (read, line 2) failed: no such file"],
    [
      "write: {path: a, content: b}",
      { state: "denied", output: { error: "read only" } },
      "Step 1 (write, line 2) failed: read only",
    ],
  ])("ends the script: %s", (line, end, text) => {
    const events = take([message(script(line, "say: never"), "prompt")], "", end);
    expect(nextScriptedStep(events, "")?.next).toEqual({
      kind: "failed",
      failure: { code: "agent_reported_failure", message: text, retryable: false, reason: "script_step_failed" },
    });
  });
  test("may be allowed to", () => {
    const events = take([message(script("shell: {command: x, allow_failure: true}", "say: on"), "prompt")], "", {
      state: "completed",
      output: { exit_code: 1 },
    });
    expect(upcoming(events)).toBe("on");
  });
  test("is ignored after a user message", () => {
    const events = take([message(script("read: a", "say: on"), "prompt")], "", failed);
    expect(upcoming([...events, message("Never mind, continue.")])).toBe("on");
  });
  test("is ignored if it was an interrupt", () => {
    const events = take([message(script("shell: a", "say: on"), "prompt")], "", { state: "interrupted", output: {} });
    expect(upcoming([...events, message("Continue.")])).toBe("on");
  });
});

describe("waiting for children", () => {
  const waiting = take([message(script("wait: all", "say: on"), "prompt")]);
  test("ends with the platform's message about them", () => expect(upcoming([...waiting, children])).toBe("on"));
  const ended = (state: string, uid = "r1"): ConversationEvent => ({
    kind: "child_finished",
    payload: { run_uid: uid, state },
  });
  const failure = (events: ConversationEvent[]) => nextScriptedStep(events, "")?.next;
  test("continues if they succeeded", () => expect(upcoming([...waiting, ended("SUCCEEDED"), children])).toBe("on"));
  test.each(["FAILED", "BLOCKED", "ERROR", "CANCELLED"])("fails when one of them ended %s", (state) =>
    expect(failure([...waiting, ended("SUCCEEDED", "r2"), ended(state), children])).toMatchObject({
      kind: "failed",
      failure: { reason: "child_run_failed", message: `Step 1 (wait, line 2): child run r1 ended ${state}.` },
    }),
  );
  test("for any of them continues if one succeeded", () => {
    const any = take([message(script("wait: any", "say: on"), "prompt")]);
    expect(upcoming([...any, ended("FAILED"), ended("SUCCEEDED", "r2"), children])).toBe("on");
    expect(failure([...any, ended("FAILED"), children])).toMatchObject({ kind: "failed" });
  });
  test.each(["all", "any"])("(%s) counts only the last end of a child that was blocked and then answered", (policy) => {
    const events = take([message(script(`wait: ${policy}`, "say: on"), "prompt")]);
    expect(upcoming([...events, ended("BLOCKED"), ended("SUCCEEDED", "r2"), ended("SUCCEEDED"), children])).toBe("on");
    expect(failure([...events, ended("BLOCKED"), ended("FAILED", "r2"), ended("FAILED"), children])).toMatchObject({
      failure: { message: "Step 1 (wait, line 2): child run r1 ended FAILED, r2 ended FAILED." },
    });
  });
  test("may be allowed to fail, and a failure is ignored after a user message", () => {
    const allowed = take([message(script("wait: {policy: all, allow_failure: true}", "say: on"), "prompt")]);
    expect(upcoming([...allowed, ended("FAILED"), children])).toBe("on");
    expect(upcoming([...waiting, ended("FAILED"), children, message("Continue.")])).toBe("on");
  });
  test("counts only children that ended since the wait before", () => {
    const first = [
      ...take([message(script("wait: {policy: all, allow_failure: true}", "wait: all", "say: on"), "prompt")]),
      ended("FAILED"),
      children,
    ];
    expect(upcoming([...take(first), ended("SUCCEEDED"), children])).toBe("on");
  });
  test("ends if a message arrives with it", () =>
    expect(upcoming([...waiting, message("hurry"), children])).toBe("on"));
  test("begins again when only a message woke the run, with an id of its own", () => {
    const woken = take([...waiting, message("hurry")]);
    expect(woken.at(-1)?.payload["call_id"]).toMatch(/-0-again-\d+$/);
    expect(upcoming([...woken, message("hurry!")])).toBe("wait");
    expect(upcoming([...woken, children])).toBe("on");
  });
});

test("a script that cannot be read fails with line and column, and names the text", () => {
  const next = (events: ConversationEvent[], body = "") => nextScriptedStep(events, body)?.next;
  expect(next([message(`Hi\n${script("say: a", "sya: b")}`, "prompt")])).toMatchObject({
    kind: "failed",
    failure: {
      code: "invalid_request",
      reason: "script_invalid",
      message: expect.stringMatching(/^Line 4, column 3 of the prompt: there is no step "sya"/),
    },
  });
  expect(next([message("Hi", "prompt")], script("say:"))).toMatchObject({
    failure: {
      message: expect.stringMatching(/^Line 2, column 7 of the agent's instructions: say: must not be empty/),
    },
  });
});

test("`fail` is the agent's own report, and is passed once", () => {
  const events = [message(script("fail: no access", "say: on"), "prompt")];
  expect(nextScriptedStep(events, "")?.next).toMatchObject({
    kind: "failed",
    failure: { code: "agent_reported_failure", message: "no access", reason: "agent_failed" },
  });
  expect(upcoming([...take(events), message("Access is there now.")])).toBe("on");
});
