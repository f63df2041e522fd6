import type { ReactNode } from "react";
import type { components } from "../../gen/api.ts";
import { Chart } from "../../ui/chart.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { count, dollars } from "../../ui/money.ts";
import { Card } from "../../ui/page.tsx";
import { duration, orDash, percent, points } from "../../ui/periods.ts";
import { SafeText } from "../../ui/safe-text.tsx";
import { DifferingSettings, differingSettings } from "./configuration-settings.tsx";

type Results = components["schemas"]["BenchmarkResults"];
type Configuration = components["schemas"]["BenchmarkConfigurationResults"];
type Interval = components["schemas"]["ConfidenceInterval"];
type Difference = components["schemas"]["BenchmarkDifference"];

export const intervalText = (interval: Interval): string =>
  interval === null ? "–" : `${percent(interval.low)} to ${percent(interval.high)}`;

/** Whether a difference is more than chance, and the difference with its interval. */
export function Verdict({ difference }: { difference: Difference }): ReactNode {
  const { verdict, difference: value, interval, pairs, differing_pairs: differing } = difference;
  const look = verdict === "better" ? "good" : verdict === "worse" ? "bad" : "";
  return (
    <>
      <span className={`badge ${look}`}>{verdict}</span>{" "}
      <span className="soft small">
        {orDash(value, points)} ({interval === null ? "–" : `${points(interval.low)} to ${points(interval.high)}`}),{" "}
        {count(differing)} of {count(pairs)} pairs differ
      </span>
    </>
  );
}

/** Trials that failed because of the infrastructure. Shown if there is one. */
const NOT_EXECUTED: Column<Configuration> = {
  title: "Not executed",
  isNumber: true,
  cell: ({ infra_failed_trials: failed }) => count(failed),
};

type Props = {
  readonly results: Results;
  /** Titles of the suite's tasks by uid. */
  readonly titles: ReadonlyMap<string, string>;
  /** Names of runners by uid. */
  readonly runners: ReadonlyMap<string, string>;
};

/** The pass rate of every configuration with its interval and its difference to the baseline, and of every task. */
export function Matrix({ results, titles, runners }: Props): ReactNode {
  const { configurations, coverage, configuration_metrics: metrics = [], trial_progress: trials } = results;
  const columns: readonly Column<Configuration>[] = [
    {
      title: "Configuration",
      cell: ({ display_name: name, role }) => (
        <>
          <SafeText>{name}</SafeText> {role === "baseline" && <span className="soft small">baseline</span>}
        </>
      ),
    },
    ...differingSettings(configurations, runners),
    { title: "Pass rate", isNumber: true, cell: ({ scoring }) => orDash(scoring.pass_rate, percent) },
    { title: "95% interval", isNumber: true, cell: ({ scoring }) => intervalText(scoring.interval) },
    {
      title: "Passed",
      isNumber: true,
      cell: ({ scoring: { pass_count: passed, fail_count: failed, coverage: known } }) =>
        `${count(passed)} of ${count(passed + failed)}` +
        (known.received < known.expected ? `, ${count(known.expected - known.received)} without an outcome` : ""),
    },
    {
      title: "Compared with the baseline",
      cell: ({ scoring: { difference_to_baseline: difference } }) =>
        difference === null ? "–" : <Verdict difference={difference} />,
    },
    ...(configurations.some(({ infra_failed_trials: failed }) => failed > 0) ? [NOT_EXECUTED] : []),
    {
      title: "Cost",
      isNumber: true,
      cell: ({ metrics: { dollars: cost } }) => orDash(typeof cost === "number" ? cost : null, dollars),
    },
    {
      title: "Mean time",
      isNumber: true,
      cell: ({ uid }) =>
        orDash(metrics.find((row) => row.configuration_uid === uid)?.avg_wall_time_s ?? null, duration),
    },
  ];
  return (
    <>
      {results.provisional && (
        <p className="notice">
          Provisional: {count(trials.completed)} of {count(trials.total)} trials have ended, and{" "}
          {count(coverage.received)} of {count(coverage.expected)} outcomes are known.
        </p>
      )}
      {results.incomplete_reason !== null && (
        <p className="notice bad">
          <SafeText>{results.incomplete_reason}</SafeText>
        </p>
      )}
      <Card title="Configurations">
        <DifferingSettings configurations={configurations} />
        <DataTable caption="Configurations" columns={columns} rows={configurations} keyOf={({ uid }) => uid} />
        <p className="soft small">
          “Not distinguishable” means that the data does not show a difference, not that there is none. More repetitions
          narrow the interval.
        </p>
      </Card>
      {results.summary_narrative !== undefined && (
        <Card title="Summary">
          <SafeText>{results.summary_narrative}</SafeText>
        </Card>
      )}
      <Tasks results={results} titles={titles} />
      <div className="charts">
        <Chart
          title="Pass rate by configuration"
          labelTitle="Configuration"
          labels={configurations.map(({ display_name: name }) => name)}
          kind="bars"
          max={1}
          format={percent}
          series={[{ name: "Pass rate", values: configurations.map(({ scoring }) => scoring.pass_rate) }]}
          tableOnly={[
            { name: "Low", values: configurations.map(({ scoring }) => scoring.interval?.low ?? null) },
            { name: "High", values: configurations.map(({ scoring }) => scoring.interval?.high ?? null) },
          ]}
        />
      </div>
    </>
  );
}

function Tasks({ results: { task_metrics: rows = [], configurations }, titles }: Omit<Props, "runners">): ReactNode {
  const tasks = [...new Set(rows.map(({ task_uid: uid }) => uid))].filter((uid) => uid !== undefined);
  const cellOf = (task: string, configuration: string) =>
    rows.find((row) => row.task_uid === task && row.configuration_uid === configuration);
  return (
    <Card title="Tasks by configuration">
      <DataTable
        caption="Tasks by configuration"
        columns={[
          { title: "Task", cell: (task) => <SafeText>{titles.get(task) ?? task}</SafeText> },
          ...configurations.map(({ uid, display_name: name }) => ({
            title: name,
            isNumber: true,
            cell: (task: string) => {
              const row = cellOf(task, uid);
              return row
                ? `${orDash(row.pass_rate, percent)} (${row.pass_count}/${row.pass_count + row.fail_count})`
                : "–";
            },
          })),
        ]}
        rows={tasks}
        keyOf={(task) => task}
      />
    </Card>
  );
}
