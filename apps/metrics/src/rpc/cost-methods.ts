import type { ServiceImpl } from "@connectrpc/connect";
import type { metrics } from "@millwright/contracts";
import type { ResolveScopeDeps } from "../usecases/resolve-scope.ts";

export type CostMethodsDeps = ResolveScopeDeps;
type Methods = Pick<ServiceImpl<typeof metrics.MetricsService>, never>;

/** Costs of pull requests and of groups of runs. */
export const costMethods = (_deps: CostMethodsDeps): Methods => ({});
