import type { ConnectRouter } from "@connectrpc/connect";
import { scoring } from "@millwright/contracts";

export type BenchmarkRoutesDeps = object;

/** Benchmark suites, their runs and trials. */
export function benchmarkRoutes(router: ConnectRouter, _deps: BenchmarkRoutesDeps): void {
  router.service(scoring.BenchmarkService, {});
}
