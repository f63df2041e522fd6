import type { Caller } from "@millwright/caller";
import { as, isUuid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import { clampPageSize, type Cursors } from "@millwright/paging";
import { BENCHMARK_RUN_STATES, type BenchmarkRun } from "../domain/benchmark-run.ts";
import type { SuiteUid } from "../domain/suite.ts";
import type { BenchmarkRunStore } from "../store/benchmark-run-store.ts";
import { readValues } from "./benchmark-filters.ts";
import { readBenchmarkProgress, readBenchmarkResults, type BenchmarkStatsDeps } from "./benchmark-results.ts";
import { findBenchmarkRun, type BenchmarkRunRef, type BenchmarkRunScopeDeps } from "./benchmark-run-scope.ts";
import { findBenchmarkFactory } from "./suite-scope.ts";

/** Optional parts of a benchmark run's record. */
const INCLUDES = ["launch_settings", "results"] as const;
const PAGE = { default: 20, max: 100 } as const;

/** A benchmark run with its public progress. */
export type BenchmarkRunView = {
  readonly run: BenchmarkRun;
  readonly progress: JsonObject;
  readonly results?: JsonObject;
  readonly hasLaunchSettings: boolean;
};

export type BenchmarkRunsDeps = BenchmarkRunScopeDeps &
  BenchmarkStatsDeps & {
    benchmarkRuns: Pick<BenchmarkRunStore, "list">;
    cursors: Cursors;
  };

export type ListRequest = {
  factoryUid: string;
  suiteUid: string;
  states: readonly string[];
  pageSize: number;
  pageToken: string;
  include: readonly string[];
};

/**
 * Returns a page of the benchmark runs of a suite, newest first, ties ordered by uid. Benchmark runs of deleted suites
 * remain readable; an unknown suite has none.
 *
 * Errors: factory_not_found · not_authorized · filter_invalid · invalid_cursor.
 */
export async function listBenchmarkRuns(
  deps: BenchmarkRunsDeps,
  caller: Caller,
  request: ListRequest,
): Promise<{ runs: BenchmarkRunView[]; nextPageToken: string }> {
  const factory = await findBenchmarkFactory(deps, caller, request.factoryUid, "factory.view");
  const include = readValues("include", request.include, INCLUDES);
  const states = readValues("state", request.states, BENCHMARK_RUN_STATES);
  const suiteUid = request.suiteUid.toLowerCase();
  const bind = { factory: factory.uid, suite: suiteUid, states: [...new Set(states)].toSorted() };
  const [createdAt, uid] =
    request.pageToken === "" ? [] : (deps.cursors.open("benchmark runs", bind, request.pageToken) as [string, string]);
  if (!isUuid(suiteUid)) return { runs: [], nextPageToken: "" };
  const limit = clampPageSize(request.pageSize, PAGE);
  const after = createdAt === undefined ? {} : { after: { createdAt: new Date(createdAt), uid: uid! } };
  const found = await deps.benchmarkRuns.list({
    factoryUid: factory.uid,
    suiteUid: as<SuiteUid>(suiteUid),
    states,
    limit: limit + 1,
    isFull: include.includes("launch_settings"),
    ...after,
  });
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  return {
    runs: await viewsOf(deps, page, include),
    nextPageToken: last ? deps.cursors.seal("benchmark runs", bind, [last.createdAt.toISOString(), last.uid]) : "",
  };
}

/** Returns a benchmark run with its progress. Errors: those of `findBenchmarkRun` · filter_invalid. */
export async function getBenchmarkRun(
  deps: BenchmarkRunsDeps,
  caller: Caller,
  request: BenchmarkRunRef & { include: readonly string[] },
): Promise<BenchmarkRunView> {
  const run = await findBenchmarkRun(deps, caller, request, "factory.view");
  const [view] = await viewsOf(deps, [run], readValues("include", request.include, INCLUDES));
  return view!;
}

export async function viewsOf(
  deps: BenchmarkStatsDeps,
  runs: readonly BenchmarkRun[],
  include: readonly string[] = [],
): Promise<BenchmarkRunView[]> {
  const progress = await readBenchmarkProgress(deps, runs);
  const results = include.includes("results")
    ? await Promise.all(runs.map((run) => readBenchmarkResults(deps, run)))
    : [];
  const hasLaunchSettings = include.includes("launch_settings");
  return runs.map((run, n) => ({
    run,
    progress: progress[n]!,
    hasLaunchSettings,
    results: results[n],
  }));
}
