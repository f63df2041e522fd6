import type { Caller, Verb } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { as, isUuid } from "@millwright/ids";
import type { BenchmarkRun, BenchmarkRunUid } from "../domain/benchmark-run.ts";
import type { BenchmarkRunStore } from "../store/benchmark-run-store.ts";
import type { ScopeDeps } from "./scope.ts";
import { findBenchmarkFactory } from "./suite-scope.ts";

export type BenchmarkRunRef = { readonly factoryUid: string; readonly suiteUid: string; readonly runUid: string };
export type BenchmarkRunScopeDeps = ScopeDeps & {
  benchmarkRuns: Pick<BenchmarkRunStore, "find">;
};

/**
 * Returns a benchmark run of a suite and checks the caller's permission. The suite may be deleted.
 *
 * Errors: factory_not_found · not_authorized · benchmark_run_not_found (absent, malformed, or of another suite or
 * factory).
 */
export async function findBenchmarkRun(
  deps: BenchmarkRunScopeDeps,
  caller: Caller,
  ref: BenchmarkRunRef,
  verb: Verb,
): Promise<BenchmarkRun> {
  const factory = await findBenchmarkFactory(deps, caller, ref.factoryUid, verb);
  const run = isUuid(ref.runUid)
    ? await deps.benchmarkRuns.find(as<BenchmarkRunUid>(ref.runUid.toLowerCase()))
    : undefined;
  if (!run || run.factoryUid !== factory.uid || run.suiteUid !== ref.suiteUid.toLowerCase())
    throw notFound("benchmark_run");
  return run;
}
