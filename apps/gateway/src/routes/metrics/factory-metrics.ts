import type { z } from "zod";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { queryChoice, route, type Route } from "../../rest/index.ts";
import type { LimitMetricsRequests } from "../../usecases/limit-metrics-requests.ts";
import { EXPORT_TYPES } from "../formats/export-format.ts";
import { factoryParams } from "../factories/factories.ts";
import { EXPORT_TEXT, members, negotiated, type Column } from "./metrics-export.ts";
import { PeriodQuery, rangeOf } from "./metrics-query.ts";
import { metricsRecord, runBreakdownRecord } from "./metrics-records.ts";
import { FactoryMetrics, RUN_DIMENSIONS, RunBreakdown } from "./metrics-schemas.ts";

export type MetricsReadDeps = {
  readonly upstreams: Pick<Upstreams, "metrics">;
  readonly limitMetrics: LimitMetricsRequests;
};

/** Returns the routes of the metrics of a factory's runs. */
export function factoryMetricsRoutes({ upstreams: { metrics }, limitMetrics }: MetricsReadDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/factory/{uid}/metrics",
      summary: "A factory's runs, pull requests, autonomy, impact and latency",
      description:
        "Runs by their creation; pull requests when a run first reported them; autonomy, impact and latency by merge time. " +
        "Means and medians without data are null.",
      verbs: ["factory.view"],
      errors: [403, 429],
      params: factoryParams,
      query: PeriodQuery,
      response: FactoryMetrics,
      handler: async (input) => {
        await limitMetrics(input.request.credentialHash(), input.params.uid);
        return metricsRecord(
          await metrics.getMetrics({ range: rangeOf(input.params.uid, input.query) }, onBehalf(input)),
        );
      },
    }),
    route({
      method: "GET",
      path: "/factory/{uid}/metrics/run-breakdown",
      summary: "A factory's runs by one dimension",
      description:
        "Runs created in the range. `source` counts root runs only. Runs without a value are in the group UNKNOWN, which is last. " +
        EXPORT_TEXT,
      verbs: ["factory.view"],
      errors: [403, 429],
      params: factoryParams,
      query: PeriodQuery.extend({ group_by: queryChoice(RUN_DIMENSIONS) }),
      response: RunBreakdown,
      mediaTypes: EXPORT_TYPES,
      handler: async (input) => {
        await limitMetrics(input.request.credentialHash(), input.params.uid);
        const { group_by: groupBy, ...range } = input.query;
        const body = runBreakdownRecord(
          await metrics.getRunBreakdown({ range: rangeOf(input.params.uid, range), groupBy }, onBehalf(input)),
        );
        return negotiated(input.request, body, {
          records: body.groups,
          columns: groupColumns(body.period_list),
          name: `runs-by-${groupBy}`,
        });
      },
    }),
  ];
}

type Group = z.input<typeof RunBreakdown>["groups"][number];

/** Returns the columns of a group, followed by one column per period. */
const groupColumns = (periods: readonly string[] = []): Column<Group>[] => [
  ...members<Group>("key", "label", "total"),
  ...periods.map((name, at) => ({ name, value: ({ series }: Group) => series?.[at] })),
];
