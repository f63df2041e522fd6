import { create } from "@bufbuild/protobuf";
import { metrics } from "@millwright/contracts";
import type { PullRequestCost } from "../domain/pull-request-cost.ts";
import type { Spend } from "../domain/spend.ts";
import type { CostBreakdown } from "../usecases/get-cost-breakdown.ts";
import type { CostBySize } from "../usecases/get-cost-by-size.ts";
import type { CostedPullRequest } from "../usecases/list-costliest.ts";
import { pullRequestMessage } from "./pull-request-message.ts";
import { scopeMessage } from "./scope-message.ts";

const spendMessage = ({ inferenceMicros, computeMicros, platformMicros }: Spend): metrics.Spend =>
  create(metrics.SpendSchema, { inferenceMicros, computeMicros, platformMicros });

/** Returns the message of the spend of pull requests. */
export const pullRequestCostMessage = ({ prCount, spend }: PullRequestCost): metrics.PullRequestCost =>
  create(metrics.PullRequestCostSchema, { prCount: BigInt(prCount), spend: spendMessage(spend) });

/** Returns the message of a cost breakdown. */
export const costBreakdownMessage = ({
  scope,
  grouping,
  total,
  totalSeries,
  groups,
  coverage,
}: CostBreakdown): metrics.GetCostBreakdownResponse =>
  create(metrics.GetCostBreakdownResponseSchema, {
    scope: scopeMessage(scope),
    groupBy: grouping,
    total: spendMessage(total),
    totalSeries: totalSeries.map(spendMessage),
    groups: groups.map(({ key, label, deleted, photoUrl, spend, series }) => ({
      key,
      label,
      deleted,
      photoUrl,
      spend: spendMessage(spend),
      series: series.map(spendMessage),
    })),
    coverage: {
      modelCalls: BigInt(coverage.modelCalls),
      pricedModelCalls: BigInt(coverage.pricedModelCalls),
      computeIntervals: BigInt(coverage.computeIntervals),
      pricedComputeIntervals: BigInt(coverage.pricedComputeIntervals),
    },
  });

/** Returns the message of the costs per size. */
export const costBySizeMessage = ({
  scope,
  prCount,
  sizedPrCount,
  buckets,
}: CostBySize): metrics.GetCostBySizeResponse =>
  create(metrics.GetCostBySizeResponseSchema, {
    scope: scopeMessage(scope),
    prCount: BigInt(prCount),
    sizedPrCount: BigInt(sizedPrCount),
    buckets: buckets.map(({ size, cost, series }) => ({
      size,
      cost: pullRequestCostMessage(cost),
      series: series.map(pullRequestCostMessage),
    })),
  });

/** Returns the message of one of the costliest pull requests. */
export const costedPullRequestMessage = ({
  record,
  models,
  kickoffRun,
  creator,
}: CostedPullRequest): metrics.CostedPullRequest =>
  create(metrics.CostedPullRequestSchema, {
    pullRequest: pullRequestMessage(record),
    spend: spendMessage(record.spend),
    models: models.map(({ modelId, inferenceMicros }) => ({ modelId, inferenceMicros })),
    creator: creator && creatorMessage(creator),
    source: kickoffRun?.source ?? "",
    requestedModelId: kickoffRun?.modelId ?? "",
  });

/** Whatever is not a user is a service account, as in profiles. */
const creatorMessage = ({ type, uid, label, photoUrl }: NonNullable<CostedPullRequest["creator"]>): metrics.Creator =>
  create(metrics.CreatorSchema, {
    type: type === "user" ? "user" : "service_account",
    uid,
    displayName: label,
    photoUrl,
  });
