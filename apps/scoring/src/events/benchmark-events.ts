import type { NewEvent } from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { BenchmarkRunState } from "../domain/benchmark-run.ts";
import { stateVersion } from "../domain/trial.ts";

type FinishedBenchmark = {
  readonly uid: string;
  readonly suiteUid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly creator: { readonly type: string; readonly uid: string };
};

/**
 * Returns the event of a finished benchmark run: `state` is completed, failed or cancelled. Payload: docs/events.md.
 */
export const benchmarkRunFinished = (
  { uid, suiteUid, factoryUid, teamUid, creator }: FinishedBenchmark,
  state: BenchmarkRunState,
): NewEvent => ({
  type: "millwright.benchmark_run.finished.v1",
  entity: "benchmark_run",
  entityUid: uid,
  entityVersion: stateVersion(state),
  teamUid,
  actor: { type: creator.type, uid: creator.uid },
  requestId: newUid(),
  cause: uid,
  payload: { benchmark_run_uid: uid, suite_uid: suiteUid, factory_uid: factoryUid, state },
});
