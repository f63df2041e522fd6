import type { ConnectRouter } from "@connectrpc/connect";
import { metrics } from "@millwright/contracts";
import { costMethods, type CostMethodsDeps } from "./cost-methods.ts";
import { pullRequestMethods, type PullRequestMethodsDeps } from "./pull-request-methods.ts";
import { runMethods, type RunMethodsDeps } from "./run-methods.ts";

export type RoutesDeps = RunMethodsDeps & CostMethodsDeps & PullRequestMethodsDeps;

/** Every RPC of this service and the use case that serves it. */
export function metricsRoutes(router: ConnectRouter, deps: RoutesDeps): void {
  router.service(metrics.MetricsService, { ...runMethods(deps), ...costMethods(deps), ...pullRequestMethods(deps) });
}
