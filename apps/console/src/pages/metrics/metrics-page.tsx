import type { ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { FactoryPage } from "../../app/factory-page.tsx";
import type { components } from "../../gen/api.ts";
import { Chart } from "../../ui/chart.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { count } from "../../ui/money.ts";
import { stringifySearch } from "../../ui/search-params.ts";
import { Time } from "../../ui/time.tsx";
import { Loaded } from "./loaded.tsx";
import { periodsOf, RUN_DIMENSIONS } from "./metrics-search.ts";
import { duration, FRESH_MS, orDash, percent, periodLabels, type RangeSearch } from "../../ui/periods.ts";
import { RangeFilters } from "../../ui/range-filters.tsx";
import { DimensionChoice } from "./dimension-choice.tsx";

type Metrics = components["schemas"]["FactoryMetrics"];
type Dimension = (typeof RUN_DIMENSIONS)[number];

/** What a factory's runs produce, how autonomously, and how fast. */
export default function MetricsPage(): ReactNode {
  const search = getRouteApi("/activity").useSearch();
  const navigate = useNavigate({ from: "/activity" });
  const change = (changes: Partial<typeof search>): void =>
    void navigate({ search: (old) => ({ ...old, ...changes }), replace: true });
  return (
    <FactoryPage
      title="Metrics"
      uid={search.factory}
      onChoose={(factory) => change({ factory })}
      filters={<RangeFilters search={search} onChange={change} />}
      actions={({ uid }) => (
        <CopyCommands
          path={`/factory/${uid}/metrics${stringifySearch(periodsOf(search))}`}
          cli={`metrics ${uid} --period ${search.period ?? "day"}`}
        />
      )}
    >
      {({ uid }) => (
        <>
          <MetricCharts factoryUid={uid} search={search} />
          <RunBreakdown
            factoryUid={uid}
            search={search}
            dimension={search.by ?? "status"}
            onDimension={(by) => change({ by })}
          />
        </>
      )}
    </FactoryPage>
  );
}

function MetricCharts({ factoryUid, search }: { factoryUid: string; search: RangeSearch }): ReactNode {
  const query = periodsOf(search);
  const result = useQuery({
    queryKey: ["metrics", factoryUid, query],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/factory/{uid}/metrics", { params: { path: { uid: factoryUid }, query }, signal })),
    placeholderData: keepPreviousData,
    staleTime: FRESH_MS,
  });
  return (
    <>
      {result.data && (
        <p className="soft small">
          Complete up to <Time at={result.data.as_of} />. Pull requests of the past can still merge, which changes their
          numbers.
        </p>
      )}
      <Loaded query={result}>
        {(metrics) => (
          <>
            <Activity metrics={metrics} />
            <Autonomy metrics={metrics} />
            <ImpactAndLatency metrics={metrics} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Activity({ metrics }: { metrics: Metrics }): ReactNode {
  const labels = periodLabels(metrics.period_list);
  const { run_count: runs, pr_count: reported, merged_pr_count: merged } = metrics;
  const { average_human_interactions_per_pr: interactions } = metrics;
  return (
    <>
      <Chart
        title="Runs"
        labelTitle="Period"
        labels={labels}
        kind="bars"
        format={count}
        series={[{ name: "Runs", values: runs.series ?? [] }]}
        summary={
          <span>
            <strong>{count(runs.total)}</strong> runs
          </span>
        }
      />
      <Chart
        title="Pull requests"
        labelTitle="Period"
        labels={labels}
        kind="lines"
        format={count}
        series={[
          { name: "First reported", values: reported.series ?? [] },
          { name: "Opened, merged by now", values: merged.series ?? [] },
        ]}
        summary={
          <>
            <span>
              <strong>{count(reported.total)}</strong> reported
            </span>
            <span>
              <strong>{count(merged.total)}</strong> opened and merged by now
            </span>
          </>
        }
      />
      <Chart
        title="Human interactions per pull request"
        labelTitle="Period"
        labels={labels}
        kind="lines"
        format={(value) => `${Number(value.toFixed(2))}`}
        series={[{ name: "Mean", values: interactions.series ?? [] }]}
        summary={
          <span>
            <strong>{orDash(interactions.mean, (value) => value.toFixed(1))}</strong> on average
          </span>
        }
      />
    </>
  );
}

function Autonomy({ metrics: { autonomy_funnel: funnel, period_list: periods } }: { metrics: Metrics }): ReactNode {
  const series = funnel.series ?? [];
  return (
    <>
      <Chart
        title="Autonomy"
        labelTitle="Period of the merge"
        labels={periodLabels(periods)}
        kind="lines"
        format={percent}
        max={1}
        series={[{ name: "Rate", values: series.map(({ rate }) => rate) }]}
        tableOnly={[
          { name: "Without human code change", values: series.map((each) => each.merged_without_human_code_change) },
          { name: "Observed", values: series.map((each) => each.factory_merged_observed) },
        ]}
        formatTableOnly={count}
        summary={
          <span>
            <strong>{orDash(funnel.rate, percent)}</strong> of {count(funnel.factory_merged_observed)} merged pull
            requests with a complete history had no code change by a person
          </span>
        }
      />
      <Chart
        title="Autonomy funnel"
        labelTitle="Merged pull requests"
        labels={["All", "Of the factory", "Observed", "Autonomous"]}
        kind="bars"
        format={count}
        series={[
          {
            name: "Pull requests",
            values: [
              funnel.total_merged,
              funnel.factory_merged,
              funnel.factory_merged_observed,
              funnel.merged_without_human_code_change,
            ],
          },
        ]}
        summary={
          <span>
            <strong>{count(funnel.factory_merged)}</strong> of {count(funnel.total_merged)} merged in{" "}
            {count(funnel.repos.length)} {funnel.repos.length === 1 ? "repository" : "repositories"} are the
            factory&apos;s
          </span>
        }
      />
    </>
  );
}

function ImpactAndLatency({ metrics }: { metrics: Metrics }): ReactNode {
  const labels = periodLabels(metrics.period_list);
  const { impact, pr_latency: latency } = metrics;
  const stages = [
    ["Kickoff to pull request", "kickoff_to_pr"],
    ["To first review", "pr_to_first_review"],
    ["First review to merge", "first_review_to_merge"],
    ["Kickoff to merge", "kickoff_to_merge"],
  ] as const;
  return (
    <>
      <Chart
        title="Impact"
        labelTitle="Period of the merge"
        labels={labels}
        kind="bars"
        format={count}
        series={[
          { name: "Lines added", values: (impact.series ?? []).map(({ additions }) => additions) },
          { name: "Lines deleted", values: (impact.series ?? []).map(({ deletions }) => deletions) },
        ]}
        tableOnly={[
          { name: "Merged pull requests", values: (impact.series ?? []).map((each) => each.merged_pr_count) },
          { name: "With known lines", values: (impact.series ?? []).map((each) => each.measured_pr_count) },
        ]}
        summary={
          <>
            <span>
              <strong>+{count(impact.additions)}</strong> −{count(impact.deletions)} lines
            </span>
            <span>
              in {count(impact.measured_pr_count)} of {count(impact.merged_pr_count)} merged pull requests
            </span>
          </>
        }
      />
      <Chart
        title="Latency of pull requests (median)"
        labelTitle="Period of the merge"
        labels={labels}
        kind="lines"
        format={duration}
        series={stages.map(([name, stage]) => ({
          name,
          values: (latency.series ?? []).map((each) => each[stage].median_seconds),
        }))}
        tableOnly={stages.map(([name, stage]) => ({
          name: `${name}: measured`,
          values: (latency.series ?? []).map((each) => each[stage].measured_pr_count),
        }))}
        formatTableOnly={count}
        summary={
          <>
            <span>
              <strong>{orDash(latency.kickoff_to_merge.median_seconds, duration)}</strong> from kickoff to merge
            </span>
            <span>{orDash(latency.kickoff_to_pr.median_seconds, duration)} to the pull request</span>
          </>
        }
      />
    </>
  );
}

type BreakdownProps = {
  readonly factoryUid: string;
  readonly search: RangeSearch;
  readonly dimension: Dimension;
  readonly onDimension: (dimension: Dimension) => void;
};

function RunBreakdown({ factoryUid, search, dimension, onDimension }: BreakdownProps): ReactNode {
  const query = { ...periodsOf(search), group_by: dimension };
  const result = useQuery({
    queryKey: ["metrics", factoryUid, "runs", query],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/metrics/run-breakdown", {
          params: { path: { uid: factoryUid }, query },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    staleTime: FRESH_MS,
  });
  return (
    <>
      <DimensionChoice label="Runs by" value={dimension} choices={RUN_DIMENSIONS} onChange={onDimension} />
      <Loaded query={result}>
        {({ groups, period_list: periods }) => {
          const named = groups.map(({ key, label = key, ...group }) => ({ name: label, ...group }));
          return (
            <>
              <Chart
                title="Breakdown of runs over time"
                labelTitle="Period"
                labels={periodLabels(periods)}
                kind="bars"
                format={count}
                series={named.map(({ name, series = [] }) => ({ name, values: series }))}
              />
              <Chart
                title="Breakdown of runs"
                labelTitle={dimension.replaceAll("_", " ")}
                labels={named.map(({ name }) => name)}
                kind="bars"
                format={count}
                series={[{ name: "Runs", values: named.map(({ total }) => total) }]}
              />
            </>
          );
        }}
      </Loaded>
    </>
  );
}
