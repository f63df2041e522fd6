import { expect, test } from "@jest/globals";
import type { BenchmarkRunState } from "./benchmark-run.ts";
import type { Ending } from "./infra-failure.ts";
import { attemptOfCause, causeOfAttempt, decideAttempt, startableTrials, stateOf, type TrialCounts } from "./trial.ts";

const COUNTS: TrialCounts = { total: 10, pending: 0, running: 0, infraFailed: 0, unmeasured: 0, openScores: 0 };

test.each<[string, number, Partial<TrialCounts>, number, { running: number; isQueueing: boolean }, number]>([
  ["as many as the parallelism", 4, { pending: 10 }, 4, { running: 0, isQueueing: false }, 100],
  ["as many as are pending", 2, { pending: 2 }, 4, { running: 0, isQueueing: false }, 100],
  ["the parallelism less those running", 1, { pending: 10, running: 3 }, 4, { running: 3, isQueueing: false }, 100],
  ["what the team's trials leave", 2, { pending: 10 }, 4, { running: 6, isQueueing: false }, 8],
  ["none while a trial of the team waits for capacity", 0, { pending: 10 }, 4, { running: 1, isQueueing: true }, 100],
  [
    "none when more are running than allowed",
    0,
    { pending: 10, running: 5 },
    4,
    { running: 5, isQueueing: false },
    100,
  ],
])("starts %s", (_title, expected, counts, parallelism, team, teamMax) =>
  expect(startableTrials({ ...COUNTS, ...counts }, parallelism, team, teamMax)).toBe(expected),
);

test.each<[BenchmarkRunState, Partial<TrialCounts>]>([
  ["running", { pending: 1 }],
  ["running", { running: 1, openScores: 3 }],
  ["scoring", { openScores: 1 }],
  ["scoring", { unmeasured: 1, infraFailed: 10 }],
  ["completed", {}],
  ["completed", { infraFailed: 9 }],
  ["failed", { infraFailed: 10 }],
])("a benchmark run is %s with %j", (state, counts) => expect(stateOf({ ...COUNTS, ...counts })).toBe(state));

const FAILURE = { state: "failed", terminalReason: "failure", isInfraFailure: false };
const CANCELLED = { state: "cancelled", terminalReason: null, isInfraFailure: false };

test.each<[Ending, number, BenchmarkRunState, string, unknown]>([
  ["succeeded", 3, "running", "succeeded", { state: "succeeded", terminalReason: null, isInfraFailure: false }],
  ["failure", 1, "running", "failed", FAILURE],
  ["timeout", 1, "running", "failed", { ...FAILURE, terminalReason: "timeout" }],
  ["cancelled", 1, "running", "cancelled", FAILURE],
  ["cancelled", 1, "cancelled", "cancelled", CANCELLED],
  ["infrastructure", 1, "running", "failed", "retry"],
  ["infrastructure", 2, "running", "failed", "retry"],
  ["infrastructure", 3, "running", "failed", { ...FAILURE, isInfraFailure: true }],
  ["infrastructure", 1, "cancelled", "failed", CANCELLED],
])("%s of attempt %i in a benchmark run that is %s", (ending, attemptNumber, benchmark, attemptState, next) =>
  expect(decideAttempt(ending, attemptNumber, benchmark)).toEqual({ attemptState, next }),
);

test("the cause of a run names its attempt", () => {
  const trialUid = "0199c2f0-1111-7abc-8def-0123456789ab";
  expect(attemptOfCause(causeOfAttempt(trialUid, 3))).toEqual({ trialUid, attemptNumber: 3 });
  for (const cause of ["", `schedule:${trialUid}:1`, `trial:${trialUid}`, `trial:${trialUid}:0`, `trial:x:1`])
    expect(attemptOfCause(cause)).toBeUndefined();
});
