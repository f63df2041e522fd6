import { describe, expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import type { Outcome, RunState } from "./run.ts";
import { transition, type Change, type LifecycleState } from "./run-state.ts";

const life = (run: RunState, execution: LifecycleState["execution"], losses = 0): LifecycleState => ({
  run,
  execution,
  setupLosses: losses,
  runLosses: losses,
});
const complete = (outcome: Outcome, needsNextExecution = false): Change => ({
  type: "complete",
  outcome,
  needsNextExecution,
});
const cancel = (isForced = false): Change => ({ type: "cancel", isForced, status: { message: "Cancelled." } });
const stop: Change = { type: "stop", state: "ERROR", status: { message: "Too long." } };

test.each<[string, LifecycleState, Change, string]>([
  ["an offer is accepted", life("PENDING", "OFFERED"), { type: "accept" }, "CLAIMED/CLAIMED accept"],
  ["an offer is declined", life("PENDING", "OFFERED"), { type: "decline" }, "QUEUED/QUEUED release"],
  ["an offer expires", life("PENDING", "OFFERED"), { type: "lose" }, "QUEUED/QUEUED release"],
  ["the agent starts", life("CLAIMED", "CLAIMED"), { type: "agent_started" }, "INPROGRESS/RUNNING unchanged"],
  [
    "a second session changes nothing",
    life("INPROGRESS", "RUNNING"),
    { type: "agent_started" },
    "INPROGRESS/RUNNING unchanged",
  ],
  [
    "a cancelled run's agent starts late",
    life("CANCELLED", "STOPPING"),
    { type: "agent_started" },
    "CANCELLED/STOPPING unchanged",
  ],
  ["done", life("INPROGRESS", "RUNNING"), complete("DONE"), "SUCCEEDED/ENDED(DONE) release"],
  ["failed in setup", life("CLAIMED", "CLAIMED"), complete("FAILED"), "FAILED/ENDED(FAILED) release"],
  ["blocked", life("INPROGRESS", "RUNNING"), complete("BLOCKED"), "BLOCKED/ENDED(BLOCKED) release"],
  ["platform error", life("INPROGRESS", "RUNNING"), complete("ERROR"), "ERROR/ENDED(ERROR) release"],
  [
    "given up by its worker",
    life("INPROGRESS", "RUNNING"),
    complete("CANCELLED", true),
    "CANCELLED/ENDED(CANCELLED) release",
  ],
  ["parks for children", life("INPROGRESS", "RUNNING"), complete("WAITING"), "INPROGRESS/ENDED(WAITING) release"],
  [
    "children were faster",
    life("INPROGRESS", "RUNNING"),
    complete("WAITING", true),
    "QUEUED/ENDED(WAITING) release +1",
  ],
  ["a follow-up was not seen", life("INPROGRESS", "RUNNING"), complete("DONE", true), "QUEUED/ENDED(DONE) release +1"],
  [
    "failed in setup, workspace retained",
    life("CLAIMED", "CLAIMED"),
    { type: "retain", status: { message: "No." } },
    "FAILED/DEBUG unchanged",
  ],
  ["the debug window ends", life("FAILED", "DEBUG"), complete("FAILED"), "FAILED/ENDED(FAILED) release"],
  ["the worker of a debug window is lost", life("FAILED", "DEBUG"), { type: "lose" }, "FAILED/ENDED(FAILED) release"],
  ["an agent works in the debug window", life("FAILED", "DEBUG"), { type: "agent_started" }, "FAILED/DEBUG unchanged"],
  [
    "late end of a cancelled run",
    life("CANCELLED", "STOPPING"),
    complete("DONE"),
    "CANCELLED/ENDED(CANCELLED) release",
  ],
  [
    "late end beside a queued execution",
    life("QUEUED", "STOPPING"),
    complete("CANCELLED"),
    "QUEUED/ENDED(CANCELLED) release",
  ],
  [
    "grace period of a cancelled run ends",
    life("CANCELLED", "STOPPING"),
    { type: "lose" },
    "CANCELLED/ENDED(CANCELLED) release",
  ],
  ["worker stops in setup", life("CLAIMED", "CLAIMED", 3), { type: "return" }, "QUEUED/QUEUED release"],
  ["worker stops while running", life("INPROGRESS", "RUNNING", 2), { type: "return" }, "QUEUED/QUEUED release"],
  ["worker lost in setup", life("CLAIMED", "CLAIMED", 2), { type: "lose" }, "QUEUED/QUEUED release"],
  ["worker lost in setup too often", life("CLAIMED", "CLAIMED", 3), { type: "lose" }, "ERROR/ENDED(ERROR) release"],
  ["worker lost while running", life("INPROGRESS", "RUNNING", 1), { type: "lose" }, "QUEUED/QUEUED release"],
  [
    "worker lost while running, and not to be resumed",
    life("INPROGRESS", "RUNNING"),
    { type: "lose", policy: "fail" },
    "ERROR/ENDED(ERROR) release",
  ],
  [
    "worker lost in setup, and not to be resumed",
    life("CLAIMED", "CLAIMED"),
    { type: "lose", policy: "fail" },
    "QUEUED/QUEUED release",
  ],
  [
    "worker lost while running too often",
    life("INPROGRESS", "RUNNING", 2),
    { type: "lose" },
    "ERROR/ENDED(ERROR) release",
  ],
  ["cancel while queued", life("QUEUED", "QUEUED"), cancel(), "CANCELLED/ENDED(CANCELLED) unchanged"],
  ["cancel while claimed", life("CLAIMED", "CLAIMED"), cancel(), "CANCELLED/STOPPING stop"],
  ["cancel while running", life("INPROGRESS", "RUNNING"), cancel(), "CANCELLED/STOPPING stop"],
  ["cancel while waiting for children", life("INPROGRESS", "ENDED"), cancel(), "CANCELLED/ENDED unchanged"],
  ["tree cancel with an open offer", life("PENDING", "OFFERED"), cancel(true), "CANCELLED/ENDED(CANCELLED) release"],
  ["a limit is broken", life("INPROGRESS", "RUNNING"), stop, "ERROR/STOPPING stop"],
  ["woken from waiting", life("INPROGRESS", "ENDED"), { type: "wake" }, "QUEUED/ENDED unchanged +1"],
  ["continued after its end", life("FAILED", "ENDED"), { type: "wake" }, "QUEUED/ENDED unchanged +1"],
  [
    "continued while its last execution still stops",
    life("CANCELLED", "STOPPING"),
    { type: "wake" },
    "QUEUED/STOPPING unchanged +1",
  ],
])("%s", (_name, before, change, expected) => {
  const { run, execution, outcome, lease, hasNextExecution } = transition(before, change);
  expect(`${run}/${execution}${outcome ? `(${outcome})` : ""} ${lease}${hasNextExecution ? " +1" : ""}`).toBe(expected);
});

test.each(["SUCCEEDED", "FAILED", "BLOCKED", "ERROR", "CANCELLED"] as const)(
  "a %s run cannot be cancelled",
  (state) => {
    expect(() => transition(life(state, "ENDED"), cancel())).toThrow(domainError({ reason: "run_already_finished" }));
  },
);

test("cancelling a PENDING run fails with run_pending", () => {
  expect(() => transition(life("PENDING", "OFFERED"), cancel())).toThrow(
    domainError({ reason: "run_pending", retryable: true }),
  );
});

describe("losses during setup and execution are counted separately", () => {
  test("in setup", () =>
    expect(transition(life("CLAIMED", "CLAIMED"), { type: "lose" })).toMatchObject({ setupLosses: 1, runLosses: 0 }));
  test("while running", () =>
    expect(transition(life("INPROGRESS", "RUNNING"), { type: "lose" })).toMatchObject({
      setupLosses: 0,
      runLosses: 1,
    }));
  test("a planned return is not counted", () =>
    expect(transition(life("INPROGRESS", "RUNNING", 2), { type: "return" })).toMatchObject({
      setupLosses: 2,
      runLosses: 2,
    }));
  test("an expired offer is not counted", () =>
    expect(transition(life("PENDING", "OFFERED"), { type: "lose" })).toMatchObject({ setupLosses: 0, runLosses: 0 }));
});

test.each<[LifecycleState, Change]>([
  [life("QUEUED", "QUEUED"), { type: "accept" }],
  [life("SUCCEEDED", "ENDED"), complete("DONE")],
  [life("INPROGRESS", "RUNNING"), { type: "wake" }],
  [life("QUEUED", "QUEUED"), { type: "lose" }],
  [life("FAILED", "DEBUG"), { type: "wake" }],
  [life("PENDING", "OFFERED"), { type: "return" }],
  [life("INPROGRESS", "RUNNING"), { type: "retain", status: { message: "No." } }],
])("throws for a change that does not fit the state (%j)", (before, change) => {
  expect(() => transition(before, change)).toThrow("does not fit");
});
