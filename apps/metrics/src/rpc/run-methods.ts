import type { ServiceImpl } from "@connectrpc/connect";
import type { metrics } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { getMetrics, type GetMetricsDeps } from "../usecases/get-metrics.ts";
import { getRunBreakdown, type GetRunBreakdownDeps } from "../usecases/get-run-breakdown.ts";
import { toMetricsMessage, toRunBreakdownMessage } from "./run-messages.ts";
import { readRange } from "./scope-message.ts";

export type RunMethodsDeps = GetMetricsDeps & GetRunBreakdownDeps;
type Methods = Pick<ServiceImpl<typeof metrics.MetricsService>, "getMetrics" | "getRunBreakdown">;

/** Metrics and run counts. */
export const runMethods = (deps: RunMethodsDeps): Methods => ({
  getMetrics: served(async ({ range }: metrics.GetMetricsRequest, caller) =>
    toMetricsMessage(await getMetrics(deps, caller, readRange(range))),
  ),
  getRunBreakdown: served(async ({ range, groupBy }: metrics.GetRunBreakdownRequest, caller) =>
    toRunBreakdownMessage(await getRunBreakdown(deps, caller, readRange(range), groupBy)),
  ),
});
