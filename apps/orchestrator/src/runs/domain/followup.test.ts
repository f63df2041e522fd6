import { expect, test } from "@jest/globals";
import { appendToPrompt, routeFollowup } from "./followup.ts";
import type { LifecycleState } from "./run-state.ts";

test.each<[LifecycleState["run"], LifecycleState["execution"], string]>([
  ["QUEUED", "QUEUED", "queued_prompt by input"],
  ["QUEUED", "STOPPING", "queued_prompt by input"],
  ["PENDING", "OFFERED", "queued_prompt by input"],
  ["CLAIMED", "CLAIMED", "queue_pending by directive"],
  ["INPROGRESS", "RUNNING", "live_session by directive"],
  ["INPROGRESS", "ENDED", "queue_pending by input, queues an execution"],
  ["SUCCEEDED", "ENDED", "handoff_execution by input, queues an execution"],
  ["FAILED", "ENDED", "handoff_execution by input, queues an execution"],
  ["FAILED", "DEBUG", "live_session by directive"],
  ["BLOCKED", "ENDED", "handoff_execution by input, queues an execution"],
  ["ERROR", "STOPPING", "handoff_execution by input, queues an execution"],
  ["CANCELLED", "STOPPING", "handoff_execution by input, queues an execution"],
])("%s/%s: %s", (run, execution, expected) => {
  const { outcome, via, queuesExecution } = routeFollowup({ run, execution, setupLosses: 0, runLosses: 0 });
  expect(`${outcome} by ${via}${queuesExecution ? ", queues an execution" : ""}`).toBe(expected);
});

test("follow-ups before the start are appended to the prompt", () => {
  expect(appendToPrompt("Fix it.", "And test it.")).toBe("Fix it.\n\nAnd test it.");
  expect(appendToPrompt(undefined, "Go.")).toBe("Go.");
  expect(appendToPrompt("Fix it.", "")).toBe("Fix it."); // a follow-up with files and no text
});
