import type { NewEvent } from "@millwright/events";
import type { BenchmarkRun } from "../domain/benchmark-run.ts";
import { stateVersion } from "../domain/trial.ts";
import { benchmarkRunFinished } from "./benchmark-events.ts";
import type { Origin } from "./origin.ts";

/** Returns the event of a created benchmark run, whose trials will start. Payload: docs/events.md. */
export const benchmarkRunCreated = (run: BenchmarkRun, trialCount: number, origin: Origin): NewEvent => ({
  type: "millwright.benchmark_run.created.v1",
  entity: "benchmark_run",
  entityUid: run.uid,
  entityVersion: stateVersion(run.state),
  teamUid: run.teamUid,
  ...origin,
  payload: {
    benchmark_run_uid: run.uid,
    suite_uid: run.suiteUid,
    suite_version: run.suiteVersion,
    factory_uid: run.factoryUid,
    manifest_hash: run.manifestHash,
    trial_count: trialCount,
  },
});

/** Returns the event of a benchmark run that a caller cancelled. Payload: that of `benchmarkRunFinished`. */
export const benchmarkRunCancelled = (run: BenchmarkRun, origin: Origin): NewEvent => ({
  ...benchmarkRunFinished(run, run.state),
  ...origin,
});
