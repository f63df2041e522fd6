import type { Transport } from "@connectrpc/connect";
import type { Database } from "@millwright/database";
import type { ServiceOptions } from "@millwright/service";
import { WORK_ENQUEUED, type WorkHandler } from "@millwright/work";
import { BenchmarkLoop } from "./benchmark-loop.ts";
import { trialRunClient } from "./clients/trial-run-client.ts";
import type { AdvanceBenchmark, CancelTrialRun } from "./domain/benchmark-run.ts";
import { onTrialRunEvents } from "./events/on-trial-run-events.ts";
import { advanceBenchmark, COMPLETE_TRIAL, START_TRIAL } from "./usecases/advance-benchmark.ts";
import { cancelTrialRun } from "./usecases/cancel-trial-run.ts";
import { completeTrial } from "./usecases/complete-trial.ts";
import { CANCEL_TRIAL_RUN } from "./usecases/settle-trial.ts";
import { startTrial } from "./usecases/start-trial.ts";

export type BenchmarkEngineOptions = Pick<ServiceOptions, "clock" | "log" | "signer"> & {
  readonly database: Database;
  readonly orchestrator: Transport;
  readonly trialsPerTeam: number;
  readonly timeScale: number;
};

/** Delay before the first retry after an infrastructure failure. The second retry waits twice as long. */
const RETRY_DELAY_MS = 15_000;
const POLL_MS = 1_000;

/** Composes the engine that executes the trials of benchmarks. */
export function composeBenchmarkEngine({
  database,
  clock,
  log,
  signer,
  orchestrator,
  trialsPerTeam,
  timeScale,
}: BenchmarkEngineOptions) {
  const runs = trialRunClient(orchestrator, signer);
  const deps = { database, clock, runs, trialsPerTeam, retryDelayMs: RETRY_DELAY_MS / timeScale };
  const advance = (uid: string): Promise<boolean> => advanceBenchmark(deps, uid);
  const loop = new BenchmarkLoop({ database, advance, pollMs: POLL_MS / timeScale, log });
  let unsubscribe: () => void = () => {};
  return {
    loop,
    handlers: {
      "advance-benchmark": async ({ payload }) => void (await advance((payload as AdvanceBenchmark).benchmark_run_uid)),
      [START_TRIAL]: ({ payload, attempts: tries }) => {
        const { trial_uid: trialUid, attempt_number: attemptNumber } = payload as {
          trial_uid: string;
          attempt_number: number;
        };
        return startTrial(deps, { trialUid, attemptNumber }, tries);
      },
      [COMPLETE_TRIAL]: ({ payload, attempts: tries }) =>
        completeTrial(deps, (payload as { trial_uid: string }).trial_uid, tries),
      [CANCEL_TRIAL_RUN]: ({ payload }) => cancelTrialRun(deps, payload as CancelTrialRun),
    } satisfies Record<string, WorkHandler>,
    runEvents: onTrialRunEvents(deps),
    start(): void {
      // The end of a trial and the end of scoring both enqueue or complete work, and either can let a benchmark run
      // advance.
      unsubscribe = database.onCommit((topics) => topics.has(WORK_ENQUEUED) && loop.wake());
      loop.start();
    },
    async stop(): Promise<void> {
      unsubscribe();
      await loop.stop();
    },
  };
}
