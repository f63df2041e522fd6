import type { z } from "zod";
import { onBehalf } from "../../clients/upstreams.ts";
import { queryChoice, queryInt, route, type Route } from "../../rest/index.ts";
import { EXPORT_TYPES } from "../formats/export-format.ts";
import { factoryParams } from "../factories/factories.ts";
import type { MetricsReadDeps } from "./factory-metrics.ts";
import { EXPORT_TEXT, members, negotiated, type Column } from "./metrics-export.ts";
import { PeriodQuery, RangeQuery, rangeOf } from "./metrics-query.ts";
import { costBreakdownRecord, costBySizeRecord, costPerPullRequestRecord } from "./metrics-records.ts";
import {
  COST_DIMENSIONS,
  CostBreakdown,
  CostBySize,
  CostliestPullRequests,
  CostPerPullRequest,
} from "./metrics-schemas.ts";
import { PULL_REQUEST_COLUMNS } from "./pull-request-columns.ts";
import { costliestRecord } from "./pull-request-records.ts";

const COSTLIEST = 20;
const COSTLIEST_MAX = 50;
const BASE = "/factory/{uid}/costs";

/** Returns the routes of the costs of a factory's runs. */
export function factoryCostRoutes({ upstreams: { metrics }, limitMetrics }: MetricsReadDeps): Route[] {
  return [
    route({
      method: "GET",
      path: `${BASE}/per-pr`,
      summary: "The mean cost of a pull request",
      description:
        "Over the pull requests first reported in the range. The cost of a run tree is divided equally among the pull requests that any of its runs " +
        "produced. Run trees without a pull request are not included. Estimates, not an invoice.",
      verbs: ["factory.view"],
      errors: [403, 429],
      params: factoryParams,
      query: PeriodQuery,
      response: CostPerPullRequest,
      handler: async (input) => {
        await limitMetrics(input.request.credentialHash(), input.params.uid);
        return costPerPullRequestRecord(
          await metrics.getCostPerPullRequest({ range: rangeOf(input.params.uid, input.query) }, onBehalf(input)),
        );
      },
    }),
    route({
      method: "GET",
      path: `${BASE}/breakdown`,
      summary: "A factory's spend by one dimension",
      description:
        "By the time of use. `source` and `user` are those of the root run of each tree, `agent` and `model` those of each run; the model is the " +
        `configured one. Lists every group with spend, UNKNOWN last. ${EXPORT_TEXT}`,
      verbs: ["factory.view"],
      errors: [403, 429],
      params: factoryParams,
      query: PeriodQuery.extend({ group_by: queryChoice(COST_DIMENSIONS) }),
      response: CostBreakdown,
      mediaTypes: EXPORT_TYPES,
      handler: async (input) => {
        await limitMetrics(input.request.credentialHash(), input.params.uid);
        const { group_by: groupBy, ...range } = input.query;
        const body = costBreakdownRecord(
          await metrics.getCostBreakdown({ range: rangeOf(input.params.uid, range), groupBy }, onBehalf(input)),
        );
        return negotiated(input.request, body, {
          records: body.groups,
          columns: groupColumns(body.period_list),
          name: `costs-by-${groupBy}`,
        });
      },
    }),
    route({
      method: "GET",
      path: `${BASE}/per-pr/top`,
      summary: "The costliest pull requests",
      description: `Of those first reported in the range, most expensive first. Details that the code host has not reported are null. ${EXPORT_TEXT}`,
      verbs: ["factory.view"],
      errors: [403, 429],
      params: factoryParams,
      query: RangeQuery.extend({
        limit: queryInt({ min: 1, max: COSTLIEST_MAX })
          .default(COSTLIEST)
          .meta({ type: "integer", minimum: 1, maximum: COSTLIEST_MAX, default: COSTLIEST }),
      }),
      response: CostliestPullRequests,
      mediaTypes: EXPORT_TYPES,
      handler: async (input) => {
        await limitMetrics(input.request.credentialHash(), input.params.uid);
        const { limit, ...range } = input.query;
        const body = costliestRecord(
          await metrics.listCostliestPullRequests({ range: rangeOf(input.params.uid, range), limit }, onBehalf(input)),
        );
        return negotiated(input.request, body, {
          records: body.data,
          columns: COSTED_COLUMNS,
          name: "costliest-pull-requests",
        });
      },
    }),
    route({
      method: "GET",
      path: `${BASE}/per-pr/by-size`,
      summary: "The mean cost of pull requests by their size",
      description:
        "Over the pull requests first reported in the range. Pull requests with unknown line counts are in no bucket.",
      verbs: ["factory.view"],
      errors: [403, 429],
      params: factoryParams,
      query: PeriodQuery,
      response: CostBySize,
      handler: async (input) => {
        await limitMetrics(input.request.credentialHash(), input.params.uid);
        return costBySizeRecord(
          await metrics.getCostBySize({ range: rangeOf(input.params.uid, input.query) }, onBehalf(input)),
        );
      },
    }),
  ];
}

type Costed = z.input<typeof CostliestPullRequests>["data"][number];
type Group = z.input<typeof CostBreakdown>["groups"][number];

const dollarColumns: Column<{ dollars: Group["dollars"] }>[] = (
  ["inference", "compute", "platform", "total"] as const
).map((name) => ({
  name: `${name}_dollars`,
  value: ({ dollars }) => dollars[name],
}));

/** Returns the columns of a group, followed by one column per period with the group's total. */
const groupColumns = (periods: readonly string[] = []): Column<Group>[] => [
  ...members<Group>("key", "label", "deleted"),
  ...dollarColumns,
  ...periods.map((name, at) => ({ name, value: ({ series }: Group) => series?.[at]?.total })),
];

const COSTED_COLUMNS: Column<Costed>[] = [
  ...PULL_REQUEST_COLUMNS,
  ...dollarColumns,
  { name: "creator_uid", value: ({ creator }) => creator?.uid },
  { name: "creator_name", value: ({ creator }) => creator?.display_name },
  ...members<Costed>("source", "requested_model_id", "models"),
];
