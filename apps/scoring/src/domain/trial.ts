import { isFinished, type BenchmarkRunState, type TrialState } from "./benchmark-run.ts";
import type { Ending } from "./infra-failure.ts";

/** Further attempts of a trial after infrastructure failures. */
export const RETRIES_MAX = 2;

/** Trials of a benchmark run by state, and what it still waits for. */
export type TrialCounts = {
  readonly total: number;
  readonly pending: number;
  readonly running: number;
  /** Failed for infrastructure alone. */
  readonly infraFailed: number;
  /** Finished, and their figures have not been read yet. */
  readonly unmeasured: number;
  /** Scores that are not terminal. */
  readonly openScores: number;
};

/** Trials of a team over all its active benchmark runs. `isQueueing`: one of them waits because a limit of the team was reached. */
export type TeamLoad = { readonly running: number; readonly isQueueing: boolean };

/** How many trials may start now. While a trial of the team waits for capacity, no other joins the queue: capacity that is left is for people's runs. */
export const startableTrials = (
  { pending, running }: TrialCounts,
  parallelism: number,
  team: TeamLoad,
  teamMax: number,
): number => (team.isQueueing ? 0 : Math.max(0, Math.min(pending, parallelism - running, teamMax - team.running)));

/** The state of a benchmark run whose trials are as counted. */
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

/** Raised by every change of state; the version of the benchmark run's events. */
export const stateVersion = (state: BenchmarkRunState): number =>
  ({ pending: 1, running: 2, scoring: 3, completed: 4, failed: 4, cancelled: 4 })[state];

/** How a trial ended. */
export type TrialEnd = {
  readonly state: Extract<TrialState, "succeeded" | "failed" | "cancelled">;
  readonly terminalReason: "timeout" | "failure" | null;
  readonly isInfraFailure: boolean;
};

/** What becomes of a trial whose attempt has ended. */
export type AttemptDecision = { readonly attemptState: TrialEnd["state"]; readonly next: "retry" | TrialEnd };

/** Decides about a trial that is running. A run that someone cancels while its benchmark goes on is a failure of its trial. */
export function decideAttempt(ending: Ending, attemptNumber: number, benchmark: BenchmarkRunState): AttemptDecision {
  const isOver = isFinished(benchmark);
  switch (ending) {
    case "succeeded":
      return { attemptState: "succeeded", next: { state: "succeeded", terminalReason: null, isInfraFailure: false } };
    case "cancelled":
      return { attemptState: "cancelled", next: isOver ? CANCELLED : failed("failure") };
    case "infrastructure":
      if (isOver) return { attemptState: "failed", next: CANCELLED };
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

/** Causes of trials' runs: for ever one run per attempt. */
export const causeOfAttempt = (trialUid: string, attemptNumber: number): string => `trial:${trialUid}:${attemptNumber}`;

/** The attempt that is the cause of a run; undefined for runs that no trial caused. */
export function attemptOfCause(
  cause: string,
): { readonly trialUid: string; readonly attemptNumber: number } | undefined {
  const [, trialUid, attemptNumber] = /^trial:([0-9a-f-]{36}):([1-9]\d{0,3})$/.exec(cause) ?? [];
  return trialUid && attemptNumber ? { trialUid, attemptNumber: Number(attemptNumber) } : undefined;
}
