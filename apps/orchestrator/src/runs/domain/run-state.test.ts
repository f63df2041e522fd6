import { describe, expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import type { Outcome, RunState } from "./run.ts";
import { transition, type Change, type Life } from "./run-state.ts";

const life = (run: RunState, execution: Life["execution"], losses = 0): Life => ({
  run,
  execution,
  setupLosses: losses,
  runLosses: losses,
});
const complete = (outcome: Outcome, isWanted = false): Change => ({ type: "complete", outcome, isWanted });
const cancel = (isForced = false): Change => ({ type: "cancel", isForced, status: { message: "Cancelled." } });
const stop: Change = { type: "stop", state: "ERROR", status: { message: "Too long." } };

test.each<[string, Life, Change, string]>([
  ["an offer is accepted", life("PENDING", "OFFERED"), { type: "accept" }, "CLAIMED/CLAIMED hold"],
  ["an offer is given back", life("PENDING", "OFFERED"), { type: "give_back" }, "QUEUED/QUEUED drop"],
  ["an offer expires", life("PENDING", "OFFERED"), { type: "lose" }, "QUEUED/QUEUED drop"],
  ["the agent starts", life("CLAIMED", "CLAIMED"), { type: "agent_started" }, "INPROGRESS/RUNNING keep"],
  [
    "a second session changes nothing",
    life("INPROGRESS", "RUNNING"),
    { type: "agent_started" },
    "INPROGRESS/RUNNING keep",
  ],
  [
    "a cancelled run's agent starts late",
    life("CANCELLED", "STOPPING"),
    { type: "agent_started" },
    "CANCELLED/STOPPING keep",
  ],
  ["done", life("INPROGRESS", "RUNNING"), complete("DONE"), "SUCCEEDED/ENDED(DONE) drop"],
  ["failed in setup", life("CLAIMED", "CLAIMED"), complete("FAILED"), "FAILED/ENDED(FAILED) drop"],
  ["blocked", life("INPROGRESS", "RUNNING"), complete("BLOCKED"), "BLOCKED/ENDED(BLOCKED) drop"],
  ["platform error", life("INPROGRESS", "RUNNING"), complete("ERROR"), "ERROR/ENDED(ERROR) drop"],
  [
    "given up by its worker",
    life("INPROGRESS", "RUNNING"),
    complete("CANCELLED", true),
    "CANCELLED/ENDED(CANCELLED) drop",
  ],
  ["parks for children", life("INPROGRESS", "RUNNING"), complete("WAITING"), "INPROGRESS/ENDED(WAITING) drop"],
  ["children were faster", life("INPROGRESS", "RUNNING"), complete("WAITING", true), "QUEUED/ENDED(WAITING) drop +1"],
  ["a follow-up was not seen", life("INPROGRESS", "RUNNING"), complete("DONE", true), "QUEUED/ENDED(DONE) drop +1"],
  [
    "failed in setup, and kept",
    life("CLAIMED", "CLAIMED"),
    { type: "retain", status: { message: "No." } },
    "FAILED/DEBUG keep",
  ],
  ["the debug window is over", life("FAILED", "DEBUG"), complete("FAILED"), "FAILED/ENDED(FAILED) drop"],
  ["the worker of a debug window is lost", life("FAILED", "DEBUG"), { type: "lose" }, "FAILED/ENDED(FAILED) drop"],
  ["an agent works in the debug window", life("FAILED", "DEBUG"), { type: "agent_started" }, "FAILED/DEBUG keep"],
  ["late end of a cancelled run", life("CANCELLED", "STOPPING"), complete("DONE"), "CANCELLED/ENDED(CANCELLED) drop"],
  [
    "late end beside a queued execution",
    life("QUEUED", "STOPPING"),
    complete("CANCELLED"),
    "QUEUED/ENDED(CANCELLED) drop",
  ],
  [
    "grace of a cancelled run is over",
    life("CANCELLED", "STOPPING"),
    { type: "lose" },
    "CANCELLED/ENDED(CANCELLED) drop",
  ],
  ["worker stops in setup", life("CLAIMED", "CLAIMED", 3), { type: "return" }, "QUEUED/QUEUED drop"],
  ["worker stops while running", life("INPROGRESS", "RUNNING", 2), { type: "return" }, "QUEUED/QUEUED drop"],
  ["worker lost in setup", life("CLAIMED", "CLAIMED", 2), { type: "lose" }, "QUEUED/QUEUED drop"],
  ["worker lost in setup too often", life("CLAIMED", "CLAIMED", 3), { type: "lose" }, "ERROR/ENDED(ERROR) drop"],
  ["worker lost while running", life("INPROGRESS", "RUNNING", 1), { type: "lose" }, "QUEUED/QUEUED drop"],
  [
    "worker lost while running, and not to be resumed",
    life("INPROGRESS", "RUNNING"),
    { type: "lose", policy: "fail" },
    "ERROR/ENDED(ERROR) drop",
  ],
  [
    "worker lost in setup, and not to be resumed",
    life("CLAIMED", "CLAIMED"),
    { type: "lose", policy: "fail" },
    "QUEUED/QUEUED drop",
  ],
  [
    "worker lost while running too often",
    life("INPROGRESS", "RUNNING", 2),
    { type: "lose" },
    "ERROR/ENDED(ERROR) drop",
  ],
  ["cancel while queued", life("QUEUED", "QUEUED"), cancel(), "CANCELLED/ENDED(CANCELLED) keep"],
  ["cancel while claimed", life("CLAIMED", "CLAIMED"), cancel(), "CANCELLED/STOPPING stop"],
  ["cancel while running", life("INPROGRESS", "RUNNING"), cancel(), "CANCELLED/STOPPING stop"],
  ["cancel while waiting for children", life("INPROGRESS", "ENDED"), cancel(), "CANCELLED/ENDED keep"],
  ["tree cancel with an open offer", life("PENDING", "OFFERED"), cancel(true), "CANCELLED/ENDED(CANCELLED) drop"],
  ["a limit is broken", life("INPROGRESS", "RUNNING"), stop, "ERROR/STOPPING stop"],
  ["woken from waiting", life("INPROGRESS", "ENDED"), { type: "wake" }, "QUEUED/ENDED keep +1"],
  ["continued after its end", life("FAILED", "ENDED"), { type: "wake" }, "QUEUED/ENDED keep +1"],
  [
    "continued while its last execution still stops",
    life("CANCELLED", "STOPPING"),
    { type: "wake" },
    "QUEUED/STOPPING keep +1",
  ],
])("%s", (_name, before, change, expected) => {
  const { run, execution, outcome, lease, isFollowed } = transition(before, change);
  expect(`${run}/${execution}${outcome ? `(${outcome})` : ""} ${lease}${isFollowed ? " +1" : ""}`).toBe(expected);
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

test.each<[Life, Change]>([
  [life("QUEUED", "QUEUED"), { type: "accept" }],
  [life("SUCCEEDED", "ENDED"), complete("DONE")],
  [life("INPROGRESS", "RUNNING"), { type: "wake" }],
  [life("QUEUED", "QUEUED"), { type: "lose" }],
  [life("FAILED", "DEBUG"), { type: "wake" }],
  [life("PENDING", "OFFERED"), { type: "return" }],
  [life("INPROGRESS", "RUNNING"), { type: "retain", status: { message: "No." } }],
])("a change that does not fit is refused (%j)", (before, change) => {
  expect(() => transition(before, change)).toThrow("does not fit");
});
