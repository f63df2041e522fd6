import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { JsonObject } from "@millwright/json";
import { compareRuns } from "../domain/benchmark-comparison.ts";
import { METRIC_ARRAYS } from "../domain/benchmark-metrics.ts";
import { planOf, type BenchmarkPlan } from "../domain/benchmark-plan.ts";
import { benchmarkProgress } from "../domain/benchmark-progress.ts";
import { benchmarkResults } from "../domain/benchmark-results.ts";
import type { BenchmarkRun } from "../domain/benchmark-run.ts";
import type { BenchmarkStatsStore } from "../store/benchmark-stats-store.ts";
import { readUids, readValues } from "./benchmark-filters.ts";
import { findBenchmarkRun, type BenchmarkRunRef, type BenchmarkRunScopeDeps } from "./benchmark-run-scope.ts";

export type BenchmarkStatsDeps = {
  benchmarkStats: Pick<BenchmarkStatsStore, "read">;
  clock: Clock;
};
export type BenchmarkResultsDeps = BenchmarkRunScopeDeps & BenchmarkStatsDeps;

/** Filters of results. Empty lists select everything. */
export type ResultsFilter = {
  readonly taskUids: readonly string[];
  readonly tags: readonly string[];
  readonly configurationUids: readonly string[];
  readonly scorerUids: readonly string[];
  readonly include: readonly string[];
};

const NO_FILTER: ResultsFilter = { taskUids: [], tags: [], configurationUids: [], scorerUids: [], include: [] };

/** Returns the progress and costs of benchmark runs, in the order of `runs`. */
export async function readBenchmarkProgress(
  { benchmarkStats, clock }: BenchmarkStatsDeps,
  runs: readonly BenchmarkRun[],
): Promise<JsonObject[]> {
  if (runs.length === 0) return [];
  const queries = runs.map((run) => ({ runUid: run.uid, plan: planOf(run.manifest) }));
  const stats = await benchmarkStats.read(queries);
  return runs.map((run, n) => benchmarkProgress(queries[n]!.plan, stats[n]!, run, clock.now()));
}

/** Returns the results of a benchmark run. Errors: filter_invalid (invalid_argument). */
export async function readBenchmarkResults(
  { benchmarkStats, clock }: BenchmarkStatsDeps,
  run: BenchmarkRun,
  filter: ResultsFilter = NO_FILTER,
): Promise<JsonObject> {
  const plan = planOf(run.manifest);
  const include = new Set(readValues("include", filter.include, METRIC_ARRAYS));
  const [taskUids, configurationUids, scorerUids] = [
    readUids("task_uid", filter.taskUids),
    readUids("configuration_uid", filter.configurationUids),
    readUids("scorer_uid", filter.scorerUids),
  ];
  const [stats] = await benchmarkStats.read([{ runUid: run.uid, plan }], selectedTasks(plan, taskUids, filter.tags));
  const metrics = {
    include,
    configurationUids: configurationUids.length > 0 ? new Set(configurationUids) : undefined,
    scorerUids: scorerUids.length > 0 ? new Set(scorerUids) : undefined,
  };
  return benchmarkResults({ run, plan, stats: stats!, metrics, now: clock.now() });
}

/** Returns the tasks that match both filters, or undefined without filters. */
function selectedTasks(
  plan: BenchmarkPlan,
  taskUids: readonly string[],
  tags: readonly string[],
): string[] | undefined {
  if (taskUids.length === 0 && tags.length === 0) return undefined;
  const matches = plan.tasks.filter(
    (task) =>
      (taskUids.length === 0 || taskUids.includes(task.uid)) &&
      (tags.length === 0 || task.tags.some((tag) => tags.includes(tag))),
  );
  return matches.map(({ uid }) => uid);
}

/** Returns the results of a benchmark run. Errors: those of `findBenchmarkRun` · filter_invalid. */
export const getBenchmarkResults = async (
  deps: BenchmarkResultsDeps,
  caller: Caller,
  request: BenchmarkRunRef & ResultsFilter,
): Promise<JsonObject> =>
  readBenchmarkResults(deps, await findBenchmarkRun(deps, caller, request, "factory.view"), request);

/**
 * Compares a benchmark run with another run of the same suite. Errors: those of `findBenchmarkRun` · not_comparable.
 */
export async function compareBenchmarkRuns(
  deps: BenchmarkResultsDeps,
  caller: Caller,
  { otherRunUid, ...ref }: BenchmarkRunRef & { otherRunUid: string },
): Promise<JsonObject> {
  const [run, other] = [
    await findBenchmarkRun(deps, caller, ref, "factory.view"),
    await findBenchmarkRun(deps, caller, { ...ref, runUid: otherRunUid }, "factory.view"),
  ];
  const [plan, otherPlan] = [planOf(run.manifest), planOf(other.manifest)];
  const [stats, otherStats] = await deps.benchmarkStats.read([
    { runUid: run.uid, plan },
    { runUid: other.uid, plan: otherPlan },
  ]);
  return compareRuns({ run, plan, stats: stats! }, { run: other, plan: otherPlan, stats: otherStats! });
}
