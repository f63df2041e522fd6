import type { Caller } from "@millwright/caller";
import type { Database } from "@millwright/database";
import { invalidArgument, notFound } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { enqueueAllWork } from "@millwright/work";
import { isFinished, type BenchmarkRun, type CancelTrialRun } from "../domain/benchmark-run.ts";
import { benchmarkRunCancelled } from "../events/benchmark-launched.ts";
import { originOf } from "../events/origin.ts";
import { cancelOpenTrials } from "../store/benchmark-cancel-store.ts";
import { lockBenchmark, setBenchmarkState } from "../store/benchmark-life-store.ts";
import { findBenchmarkRunRow } from "../store/benchmark-run-rows.ts";
import type { BenchmarkStatsDeps } from "./benchmark-results.ts";
import { findBenchmarkRun, type BenchmarkRunRef, type BenchmarkRunScopeDeps } from "./benchmark-run-scope.ts";
import { viewsOf, type BenchmarkRunView } from "./benchmark-runs.ts";
import { CANCEL_TRIAL_RUN } from "./settle-trial.ts";

export type CancelBenchmarkDeps = BenchmarkRunScopeDeps &
  BenchmarkStatsDeps & { readonly database: Pick<Database, "transaction"> };

/**
 * Cancels the active trials of a benchmark run, with their runs. Results of terminal trials are preserved, and their
 * judges continue.
 *
 * Errors: those of `findBenchmarkRun` · not_authorized · benchmark_run_finished (invalid_argument).
 */
export async function cancelBenchmarkRun(
  deps: CancelBenchmarkDeps,
  caller: Caller,
  ref: BenchmarkRunRef,
): Promise<BenchmarkRunView> {
  const { uid } = await findBenchmarkRun(deps, caller, ref, "run.manage");
  const cancelled = await deps.database.transaction(async (tx): Promise<BenchmarkRun> => {
    const locked = await lockBenchmark(tx, uid);
    if (!locked) throw notFound("benchmark_run");
    if (isFinished(locked.state))
      throw invalidArgument("benchmark_run_finished", `The benchmark run has finished already; it is ${locked.state}.`);
    const now = deps.clock.now();
    const trials = await cancelOpenTrials(tx, uid, now);
    await enqueueAllWork(
      tx,
      trials.map(({ trialUid, runUid }) => {
        const payload: CancelTrialRun = { benchmark_run_uid: uid, trial_uid: trialUid, run_uid: runUid };
        return { kind: CANCEL_TRIAL_RUN, key: runUid, payload, teamUid: locked.teamUid };
      }),
    );
    await setBenchmarkState(tx, uid, "cancelled", now, "The benchmark run was cancelled.");
    const run = (await findBenchmarkRunRow(tx, uid))!;
    await appendEvents(tx, [benchmarkRunCancelled(run, originOf(caller))]);
    return run;
  });
  const [view] = await viewsOf(deps, [cancelled]);
  return view!;
}
