import type { ConnectRouter } from "@connectrpc/connect";
import { benchmarkRoutes, type BenchmarkRoutesDeps } from "./benchmark-routes.ts";
import { scorerRoutes, type ScorerRoutesDeps } from "./scorer-routes.ts";

export type RoutesDeps = { readonly scorers: ScorerRoutesDeps; readonly benchmarks: BenchmarkRoutesDeps };

/** Registers all RPC services of this service except definitions and events. */
export function scoringRoutes(router: ConnectRouter, { scorers, benchmarks }: RoutesDeps): void {
  scorerRoutes(router, scorers);
  benchmarkRoutes(router, benchmarks);
}
