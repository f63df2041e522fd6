import type { Transport } from "@connectrpc/connect";
import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import type { EventsHandlers } from "@millwright/events";
import type { CallerSigner } from "@millwright/rpc";
import type { Logger } from "@millwright/telemetry";
import { WORK_ENQUEUED, type WorkHandler } from "@millwright/work";
import { BenchmarkLoop } from "./benchmark-loop.ts";
import { trialRunClient } from "./clients/trial-run-client.ts";
import type { AdvanceBenchmark, CancelTrialRun } from "./domain/benchmark-run.ts";
import { onTrialRunEvents } from "./events/on-trial-run-events.ts";
import { findDueBenchmarks } from "./store/benchmark-life-store.ts";
import { advanceBenchmark, COMPLETE_TRIAL, START_TRIAL } from "./usecases/advance-benchmark.ts";
import { cancelTrialRun } from "./usecases/cancel-trial-run.ts";
import { completeTrial } from "./usecases/complete-trial.ts";
import { CANCEL_TRIAL_RUN } from "./usecases/settle-trial.ts";
import { startTrial } from "./usecases/start-trial.ts";

export type BenchmarkEngineOptions = {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signer: CallerSigner;
  readonly orchestrator: Transport;
  readonly trialsPerTeam: number;
  readonly timeScale: number;
};

export type BenchmarkEngine = {
  readonly loop: BenchmarkLoop;
  /** Handlers of the work items that drive benchmark runs, by kind. */
  readonly handlers: Readonly<Record<string, WorkHandler>>;
  /** Handlers of the events of trials' runs, by event type. */
  readonly runEvents: EventsHandlers;
  start(): void;
  stop(): Promise<void>;
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
}: BenchmarkEngineOptions): BenchmarkEngine {
  const runs = trialRunClient(orchestrator, signer);
  const deps = { database, clock, runs, trialsPerTeam, retryDelayMs: RETRY_DELAY_MS / timeScale };
  const advance = (uid: string): Promise<boolean> => advanceBenchmark(deps, uid);
  const loop = new BenchmarkLoop({ due: () => findDueBenchmarks(database), advance, pollMs: POLL_MS / timeScale, log });
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
    },
    runEvents: onTrialRunEvents(deps),
    start() {
      // The end of a trial and the end of scoring both enqueue or complete work, and either can let a benchmark run
      // advance.
      unsubscribe = database.onCommit((topics) => topics.has(WORK_ENQUEUED) && loop.wake());
      loop.start();
    },
    async stop() {
      unsubscribe();
      await loop.stop();
    },
  };
}
