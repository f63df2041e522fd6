import type { ServiceImpl } from "@connectrpc/connect";
import type { metrics } from "@millwright/contracts";
import type { ResolveScopeDeps } from "../usecases/resolve-scope.ts";

export type RunMethodsDeps = ResolveScopeDeps;
type Methods = Pick<ServiceImpl<typeof metrics.MetricsService>, never>;

/** Metrics and run counts. */
export const runMethods = (_deps: RunMethodsDeps): Methods => ({});
