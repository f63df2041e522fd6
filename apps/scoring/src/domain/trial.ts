import { isFinished, type BenchmarkRunState, type TrialState } from "./benchmark-run.ts";
import type { Ending } from "./infra-failure.ts";

/** Maximum number of retries of a trial after infrastructure failures. */
export const RETRIES_MAX = 2;

/** Number of trials of a benchmark run by state, and of pending work. */
export type TrialCounts = {
  readonly total: number;
  readonly pending: number;
  readonly running: number;
  /** Failed for infrastructure reasons. */
  readonly infraFailed: number;
  /** Finished trials whose figures have not been read. */
  readonly unmeasured: number;
  /** Scores that are not terminal. */
  readonly openScores: number;
};

/**
 * Trials of a team over all its active benchmark runs. `isQueueing`: a trial is waiting because a limit of the team is
 * reached.
 */
export type TeamLoad = { readonly running: number; readonly isQueueing: boolean };

/**
 * Returns the number of trials that can start now. While a trial of the team waits for capacity, no other trial is
 * queued, so that remaining capacity is available to people's runs.
 */
export const startableTrials = (
  { pending, running }: TrialCounts,
  parallelism: number,
  team: TeamLoad,
  teamMax: number,
): number => (team.isQueueing ? 0 : Math.max(0, Math.min(pending, parallelism - running, teamMax - team.running)));

/** Returns the state of a benchmark run, derived from its trials. */
export function stateOf({
  total,
  pending,
  running,
  infraFailed,
  unmeasured,
  openScores,
}: TrialCounts): BenchmarkRunState {
  if (pending + running > 0) return "running";
  if (unmeasured + openScores > 0) return "scoring";
  return total > 0 && infraFailed === total ? "failed" : "completed";
}

/** Returns the version of the benchmark run's events, which increases with every change of state. */
export const stateVersion = (state: BenchmarkRunState): number =>
  ({ pending: 1, running: 2, scoring: 3, completed: 4, failed: 4, cancelled: 4 })[state];

/** The end of a trial. */
export type TrialEnd = {
  readonly state: Extract<TrialState, "succeeded" | "failed" | "cancelled">;
  readonly terminalReason: "timeout" | "failure" | null;
  readonly isInfraFailure: boolean;
};

/** What happens to a trial whose attempt has ended. */
export type AttemptDecision = { readonly attemptState: TrialEnd["state"]; readonly next: "retry" | TrialEnd };

/**
 * Decides how a running trial continues after its attempt. A run that a person cancels while its benchmark run is
 * active is a failure of the trial.
 */
export function decideAttempt(ending: Ending, attemptNumber: number, benchmark: BenchmarkRunState): AttemptDecision {
  const isBenchmarkFinished = isFinished(benchmark);
  switch (ending) {
    case "succeeded":
      return { attemptState: "succeeded", next: { state: "succeeded", terminalReason: null, isInfraFailure: false } };
    case "cancelled":
      return { attemptState: "cancelled", next: isBenchmarkFinished ? CANCELLED : failed("failure") };
    case "infrastructure":
      if (isBenchmarkFinished) return { attemptState: "failed", next: CANCELLED };
      return {
        attemptState: "failed",
        next: attemptNumber <= RETRIES_MAX ? "retry" : { ...failed("failure"), isInfraFailure: true },
      };
    case "failure":
    case "timeout":
      return { attemptState: "failed", next: failed(ending) };
    default:
      return ending satisfies never;
  }
}

const CANCELLED: TrialEnd = { state: "cancelled", terminalReason: null, isInfraFailure: false };
const failed = (terminalReason: "timeout" | "failure"): TrialEnd => ({
  state: "failed",
  terminalReason,
  isInfraFailure: false,
});

/**
 * Returns the cause of an attempt's run. Causes are idempotency keys without expiry, so an attempt has at most one run.
 */
export const causeOfAttempt = (trialUid: string, attemptNumber: number): string => `trial:${trialUid}:${attemptNumber}`;

/** Returns the attempt that is the cause of a run, or undefined for other runs. */
export function attemptOfCause(
  cause: string,
): { readonly trialUid: string; readonly attemptNumber: number } | undefined {
  const [, trialUid, attemptNumber] = /^trial:([0-9a-f-]{36}):([1-9]\d{0,3})$/.exec(cause) ?? [];
  return trialUid && attemptNumber ? { trialUid, attemptNumber: Number(attemptNumber) } : undefined;
}
