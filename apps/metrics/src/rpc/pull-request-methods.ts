import type { ServiceImpl } from "@connectrpc/connect";
import type { metrics } from "@millwright/contracts";
import type { ResolveScopeDeps } from "../usecases/resolve-scope.ts";

export type PullRequestMethodsDeps = ResolveScopeDeps;
type Methods = Pick<ServiceImpl<typeof metrics.MetricsService>, never>;

/** Pull requests that runs of a factory produced. */
export const pullRequestMethods = (_deps: PullRequestMethodsDeps): Methods => ({});
