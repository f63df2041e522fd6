import type { ConnectRouter } from "@connectrpc/connect";
import { metrics } from "@millwright/contracts";
import { costMethods, type CostMethodsDeps } from "./cost-methods.ts";
import { priceMethods, type PriceMethodsDeps } from "./price-methods.ts";
import { pullRequestMethods, type PullRequestMethodsDeps } from "./pull-request-methods.ts";
import { runMethods, type RunMethodsDeps } from "./run-methods.ts";

export type RoutesDeps = RunMethodsDeps & CostMethodsDeps & PullRequestMethodsDeps & PriceMethodsDeps;

/** Every RPC of this service and the use case that serves it. */
export function metricsRoutes(router: ConnectRouter, deps: RoutesDeps): void {
  router.service(metrics.MetricsService, { ...runMethods(deps), ...costMethods(deps), ...pullRequestMethods(deps) });
  router.service(metrics.PriceService, priceMethods(deps));
}
