import { expect, test } from "@jest/globals";
import { DomainError } from "@millwright/errors";
import type { ExecutionResult } from "../context/execution-context.ts";
import { ExecutionCancelled, LeaseLost } from "../context/execution-errors.ts";
import { outcomeOf, savesWorkspace, type Settled } from "./execution-outcome.ts";

const done: Settled = { result: { outcome: "DONE", snapshotKey: "s" } };
const savedWhenStopped: Settled = { result: { outcome: "CANCELLED", snapshotKey: "s" } };
const unchanged: Settled = { result: { outcome: "CANCELLED", isWorkspaceUnchanged: true } };
const failedRun: Settled = { result: { outcome: "FAILED" } };
const threw: Settled = { error: new Error("private words") };
const stop = (cause: "cancelled" | "worker_stopping" | "timeout") => new ExecutionCancelled(cause, "why");

test.each<[string, Settled, Error | undefined, Partial<ExecutionResult> | undefined]>([
  ["its own end", done, undefined, { outcome: "DONE", snapshotKey: "s" }],
  [
    "a broken harness",
    threw,
    undefined,
    {
      outcome: "ERROR",
      error: {
        code: "internal_error",
        message: "The worker failed while it ran this execution.",
        retryable: true,
        reason: "worker_failed",
      },
    },
  ],
  ["a cancel, whatever the harness reports", done, stop("cancelled"), { outcome: "CANCELLED", snapshotKey: "s" }],
  [
    "a cancel that leaves no change",
    unchanged,
    stop("cancelled"),
    { outcome: "CANCELLED", isWorkspaceUnchanged: true },
  ],
  ["a cancel of a harness that hangs", "abandoned", stop("cancelled"), { outcome: "CANCELLED" }],
  [
    "a time limit",
    threw,
    stop("timeout"),
    {
      outcome: "ERROR",
      error: { code: "infrastructure_timeout", message: "why", retryable: false, reason: "execution_timeout" },
    },
  ],
  [
    "a time limit, with the workspace at that time",
    savedWhenStopped,
    stop("timeout"),
    {
      outcome: "ERROR",
      snapshotKey: "s",
      error: { code: "infrastructure_timeout", message: "why", retryable: false, reason: "execution_timeout" },
    },
  ],
  ["an end reached while the worker stops", done, stop("worker_stopping"), { outcome: "DONE", snapshotKey: "s" }],
  ["an echo of the worker's stop", failedRun, stop("worker_stopping"), undefined],
  ["a lost lease", done, new LeaseLost(), undefined],
  [
    "a refusal of its events",
    done,
    new DomainError({ kind: "too_large", reason: "events_quota", message: "Too many." }),
    {
      outcome: "ERROR",
      snapshotKey: "s",
      error: { code: "internal_error", message: "Too many.", retryable: false, reason: "events_quota" },
    },
  ],
])("reports the outcome of %s", (_, settled, stopReason, expected) => {
  expect(outcomeOf(settled, stopReason)).toEqual(expected);
});

test.each<[string, Error, boolean]>([
  ["a cancel", stop("cancelled"), true],
  ["a time limit", stop("timeout"), true],
  [
    "a refusal of its events",
    new DomainError({ kind: "too_large", reason: "events_quota", message: "Too many." }),
    true,
  ],
  ["the stop of its worker, because the next attempt repeats the step", stop("worker_stopping"), false],
  ["a lost lease", new LeaseLost(), false],
])("states whether the workspace is saved after %s", (_, stopReason, expected) => {
  expect(savesWorkspace(stopReason)).toBe(expected);
});
