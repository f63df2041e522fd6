import { expect, test } from "@jest/globals";
import type { RunState } from "./run.ts";
import { childrenMessage, evaluateWait, waitingMessage } from "./wait.ts";

const children = (...states: RunState[]) =>
  states.map((state, n) => ({ uid: `child-${n}`, title: `Part ${n}`, state }));

test.each<["all" | "any", RunState[], boolean, number]>([
  ["all", ["SUCCEEDED", "INPROGRESS"], false, 1],
  ["all", ["SUCCEEDED", "BLOCKED"], true, 2],
  ["all", [], true, 0],
  ["any", ["QUEUED", "PENDING"], false, 0],
  ["any", ["QUEUED", "ERROR"], true, 1],
  ["any", [], true, 0],
])("wait for %s of %j: complete = %s", (policy, states, isComplete, endedCount) => {
  const evaluated = evaluateWait(policy, children(...states));
  expect([evaluated.isComplete, evaluated.ended.length]).toEqual([isComplete, endedCount]);
});

test("the message to the parent states how each child ended", () => {
  expect(childrenMessage([{ uid: "a", title: "Fix", state: "FAILED", message: "No tests." }])).toContain(
    '- a "Fix": FAILED – No tests.',
  );
  expect(waitingMessage(1)).toBe("Waiting for 1 child run.");
});
