import type { ServiceImpl } from "@connectrpc/connect";
import type { metrics } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { getCostBreakdown, type GetCostBreakdownDeps } from "../usecases/get-cost-breakdown.ts";
import { getCostBySize } from "../usecases/get-cost-by-size.ts";
import { getCostPerPullRequest, type PullRequestCostDeps } from "../usecases/get-cost-per-pull-request.ts";
import { listCostliest, type ListCostliestDeps } from "../usecases/list-costliest.ts";
import {
  costBreakdownMessage,
  costBySizeMessage,
  costedPullRequestMessage,
  pullRequestCostMessage,
} from "./cost-messages.ts";
import { readRange, scopeMessage } from "./scope-message.ts";

export type CostMethodsDeps = PullRequestCostDeps & GetCostBreakdownDeps & ListCostliestDeps;

type Names = "getCostPerPullRequest" | "getCostBreakdown" | "listCostliestPullRequests" | "getCostBySize";
type Methods = Pick<ServiceImpl<typeof metrics.MetricsService>, Names>;

/** Costs of pull requests and of groups of runs. */
export const costMethods = (deps: CostMethodsDeps): Methods => ({
  getCostPerPullRequest: served(async ({ range }: metrics.GetCostPerPullRequestRequest, caller) => {
    const { scope, cost, series } = await getCostPerPullRequest(deps, caller, readRange(range));
    return {
      scope: scopeMessage(scope),
      cost: pullRequestCostMessage(cost),
      series: series.map(pullRequestCostMessage),
    };
  }),
  getCostBreakdown: served(async ({ range, groupBy }: metrics.GetCostBreakdownRequest, caller) =>
    costBreakdownMessage(await getCostBreakdown(deps, caller, readRange(range), groupBy)),
  ),
  listCostliestPullRequests: served(async ({ range, limit }: metrics.ListCostliestPullRequestsRequest, caller) => {
    const { scope, data } = await listCostliest(deps, caller, readRange(range), limit);
    return { scope: scopeMessage(scope), data: data.map(costedPullRequestMessage) };
  }),
  getCostBySize: served(async ({ range }: metrics.GetCostBySizeRequest, caller) =>
    costBySizeMessage(await getCostBySize(deps, caller, readRange(range))),
  ),
});
