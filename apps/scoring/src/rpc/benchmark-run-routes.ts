import type { ServiceImpl } from "@connectrpc/connect";
import type { scoring } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { getBenchmarkRun, listBenchmarkRuns, type BenchmarkRunsDeps } from "../usecases/benchmark-runs.ts";
import { cancelBenchmarkRun, type CancelBenchmarkDeps } from "../usecases/cancel-benchmark-run.ts";
import { launchBenchmark, type LaunchDeps } from "../usecases/launch-benchmark.ts";
import { readLaunch, toBenchmarkRunMessage } from "./benchmark-run-messages.ts";

export type BenchmarkRunRoutesDeps = LaunchDeps & BenchmarkRunsDeps & CancelBenchmarkDeps;

/** Methods of BenchmarkService for launches and benchmark runs. */
export const benchmarkRunRoutes = (deps: BenchmarkRunRoutesDeps) =>
  ({
    launchBenchmark: served(async (request: scoring.LaunchBenchmarkRequest, caller) =>
      launchBenchmark(deps, caller, readLaunch(request)),
    ),
    listBenchmarkRuns: served(async (request: scoring.ListBenchmarkRunsRequest, caller) => {
      const { runs, nextPageToken } = await listBenchmarkRuns(deps, caller, request);
      return { runs: runs.map(toBenchmarkRunMessage), nextPageToken };
    }),
    getBenchmarkRun: served(async (request: scoring.GetBenchmarkRunRequest, caller) => ({
      run: toBenchmarkRunMessage(await getBenchmarkRun(deps, caller, request)),
    })),
    cancelBenchmarkRun: served(async (request: scoring.CancelBenchmarkRunRequest, caller) => ({
      run: toBenchmarkRunMessage(await cancelBenchmarkRun(deps, caller, request)),
    })),
  }) satisfies Partial<ServiceImpl<typeof scoring.BenchmarkService>>;
