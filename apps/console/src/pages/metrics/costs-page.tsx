import type { ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { FactoryPage } from "../../app/factory-page.tsx";
import { Chart } from "../../ui/chart.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { count, dollars } from "../../ui/money.ts";
import { stringifySearch } from "../../ui/search-params.ts";
import { Loaded } from "./loaded.tsx";
import { COST_DIMENSIONS, periodsOf } from "./metrics-search.ts";
import { FRESH_MS, orDash, periodLabels, type RangeSearch } from "../../ui/periods.ts";
import { RangeFilters } from "../../ui/range-filters.tsx";
import { DimensionChoice } from "./dimension-choice.tsx";
import { TopPullRequests } from "./top-pull-requests.tsx";

type Dimension = (typeof COST_DIMENSIONS)[number];
type Part = { readonly factoryUid: string; readonly search: RangeSearch };

/** What a factory's pull requests and its runs cost. */
export default function CostsPage(): ReactNode {
  const search = getRouteApi("/costs").useSearch();
  const navigate = useNavigate({ from: "/costs" });
  const change = (changes: Partial<typeof search>): void =>
    void navigate({ search: (old) => ({ ...old, ...changes }), replace: true });
  return (
    <FactoryPage
      title="Costs"
      uid={search.factory}
      onChoose={(factory) => change({ factory })}
      filters={<RangeFilters search={search} onChange={change} />}
      actions={({ uid }) => (
        <CopyCommands path={`/factory/${uid}/costs/per-pr${stringifySearch(periodsOf(search))}`} cli={`costs ${uid}`} />
      )}
    >
      {({ uid }) => (
        <>
          <TopPullRequests factoryUid={uid} search={search} />
          <PerPullRequest factoryUid={uid} search={search} />
          <BySize factoryUid={uid} search={search} />
          <Breakdown
            factoryUid={uid}
            search={search}
            dimension={search.by ?? "agent"}
            onDimension={(by) => change({ by })}
          />
          <p className="soft small">
            The breakdown counts all spend when it arose. Costs of a pull request are everything that its run trees have
            cost, placed when it was first reported. They are estimates, not an invoice.
          </p>
        </>
      )}
    </FactoryPage>
  );
}

function PerPullRequest({ factoryUid, search }: Part): ReactNode {
  const query = periodsOf(search);
  const result = useQuery({
    queryKey: ["costs", factoryUid, "per-pr", query],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/factory/{uid}/costs/per-pr", { params: { path: { uid: factoryUid }, query }, signal })),
    placeholderData: keepPreviousData,
    staleTime: FRESH_MS,
  });
  return (
    <Loaded query={result}>
      {({ period_list: periods, series = [], mean, pr_count: prs, dollars: sum }) => (
        <Chart
          title="Mean cost of a pull request"
          labelTitle="Period"
          labels={periodLabels(periods)}
          kind="bars"
          format={dollars}
          series={[
            { name: "Inference", values: series.map((each) => each.inference_mean) },
            { name: "Compute", values: series.map((each) => each.compute_mean) },
            { name: "Platform", values: series.map((each) => each.platform_mean) },
          ]}
          tableOnly={[{ name: "Pull requests", values: series.map((each) => each.pr_count) }]}
          formatTableOnly={count}
          summary={
            <>
              <span>
                <strong>{orDash(mean, dollars)}</strong> on average
              </span>
              <span>
                {dollars(sum.total)} for {count(prs)} pull requests
              </span>
            </>
          }
        />
      )}
    </Loaded>
  );
}

function BySize({ factoryUid, search }: Part): ReactNode {
  const query = periodsOf(search);
  const result = useQuery({
    queryKey: ["costs", factoryUid, "by-size", query],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/costs/per-pr/by-size", { params: { path: { uid: factoryUid }, query }, signal }),
      ),
    placeholderData: keepPreviousData,
    staleTime: FRESH_MS,
  });
  return (
    <Loaded query={result}>
      {({ buckets, period_list: periods, pr_count: prs, sized_pr_count: sized }) => (
        <>
          <Chart
            title="Mean cost by size"
            labelTitle="Size"
            labels={buckets.map(({ size }) => size)}
            kind="bars"
            format={dollars}
            series={[{ name: "Mean", values: buckets.map(({ mean }) => mean) }]}
            tableOnly={[{ name: "Pull requests", values: buckets.map((each) => each.pr_count) }]}
            formatTableOnly={count}
            summary={
              <span>
                <strong>{count(sized)}</strong> of {count(prs)} pull requests have known lines: S below 100, M below
                500, L below 1000, XL
              </span>
            }
          />
          <Chart
            title="Mean cost by size over time"
            labelTitle="Period"
            labels={periodLabels(periods)}
            kind="lines"
            format={dollars}
            series={buckets.map(({ size, series = [] }) => ({ name: size, values: series }))}
          />
        </>
      )}
    </Loaded>
  );
}

type BreakdownProps = Part & { readonly dimension: Dimension; readonly onDimension: (dimension: Dimension) => void };

function Breakdown({ factoryUid, search, dimension, onDimension }: BreakdownProps): ReactNode {
  const query = { ...periodsOf(search), group_by: dimension };
  const result = useQuery({
    queryKey: ["costs", factoryUid, "breakdown", query],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/costs/breakdown", { params: { path: { uid: factoryUid }, query }, signal }),
      ),
    placeholderData: keepPreviousData,
    staleTime: FRESH_MS,
  });
  return (
    <>
      <DimensionChoice label="Spend by" value={dimension} choices={COST_DIMENSIONS} onChange={onDimension} />
      <Loaded query={result}>
        {({ groups, total, period_list: periods, coverage }) => {
          const named = groups.map((group) => ({ ...group, label: nameOf(group, groups) }));
          return (
            <>
              <Chart
                title="Spend over time"
                labelTitle="Period"
                labels={periodLabels(periods)}
                kind="bars"
                format={dollars}
                series={named.map(({ label, series = [] }) => ({
                  name: label,
                  values: series.map((each) => each.total),
                }))}
                summary={
                  <>
                    <span>
                      <strong>{dollars(total.total)}</strong>
                    </span>
                    <span>
                      Known prices: {count(coverage.priced_model_calls)} of {count(coverage.model_calls)} model calls,{" "}
                      {count(coverage.priced_compute_intervals)} of {count(coverage.compute_intervals)} compute
                      intervals
                    </span>
                  </>
                }
              />
              <Chart
                title="Spend"
                labelTitle={dimension}
                labels={named.map(({ label }) => label)}
                kind="bars"
                format={dollars}
                series={(["inference", "compute", "platform"] as const).map((part) => ({
                  name: part,
                  values: named.map((group) => group.dollars[part]),
                }))}
              />
            </>
          );
        }}
      </Loaded>
    </>
  );
}

type Group = { readonly key: string; readonly label: string; readonly deleted: boolean };

/** Returns the name of a group, with its key if another group has the same label. */
function nameOf({ key, label, deleted }: Group, groups: readonly Group[]): string {
  const isUnique = groups.filter((each) => each.label === label).length === 1;
  return `${isUnique ? label : `${label} (${key})`}${deleted ? " (deleted)" : ""}`;
}
