import type { ServiceImpl } from "@connectrpc/connect";
import type { scoring } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { compareBenchmarkRuns, getBenchmarkResults, type BenchmarkResultsDeps } from "../usecases/benchmark-results.ts";
import { getTrial, listTrials, type ReadTrialsDeps } from "../usecases/list-trials.ts";

export type BenchmarkResultRoutesDeps = BenchmarkResultsDeps & ReadTrialsDeps;

/** Methods of BenchmarkService that read trials and results of benchmark runs. */
export const benchmarkResultRoutes = (deps: BenchmarkResultRoutesDeps) =>
  ({
    getBenchmarkResults: served(async (request: scoring.GetBenchmarkResultsRequest, caller) => ({
      results: await getBenchmarkResults(deps, caller, request),
    })),
    compareBenchmarkRuns: served(async (request: scoring.CompareBenchmarkRunsRequest, caller) => ({
      comparison: await compareBenchmarkRuns(deps, caller, request),
    })),
    listTrials: served(async (request: scoring.ListTrialsRequest, caller) => {
      const { trials, nextPageToken } = await listTrials(deps, caller, request);
      return { trials: trials.map((data) => ({ data })), nextPageToken };
    }),
    getTrial: served(async (request: scoring.GetTrialRequest, caller) => ({
      trial: { data: await getTrial(deps, caller, request) },
    })),
  }) satisfies Partial<ServiceImpl<typeof scoring.BenchmarkService>>;
