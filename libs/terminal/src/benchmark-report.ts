import { table } from "./table.ts";
import { percent, points, range } from "./rates.ts";

type Interval = { low: number; high: number } | null;
type Scoring = {
  pass_count: number;
  fail_count: number;
  pass_rate: number | null;
  interval: Interval;
  coverage: { expected: number; received: number };
};
type Difference = { difference: number | null; interval: Interval; verdict: string };
type Metrics = { avg_wall_time_s?: number | null; dollars?: number | null };

export type BenchmarkRun = {
  uid: string;
  state: string;
  created_at: string;
  suite_version: number;
  trial_count: number | null;
  cost_usd: number | null;
  trial_progress?: { total: number; completed: number; failed: number };
  score_progress?: { received: number; expected: number };
  configuration_stats: { display_name: string; role: string; pass_rate: number | null }[] | null;
};
export type Results = {
  run_state: string;
  incomplete_reason: string | null;
  summary_narrative?: string;
  configurations: {
    uid: string;
    role: string;
    display_name: string;
    metrics: Metrics;
    scoring: Scoring & { difference_to_baseline: Difference | null };
  }[];
};
export type Comparison = {
  same_manifest: boolean;
  changed_tasks: string[];
  tasks_only_in_run: string[];
  tasks_only_in_other_run: string[];
  configurations: {
    role: string;
    display_name: string;
    run: Scoring;
    other_run: Scoring;
    difference: Difference;
    verdict: string;
  }[];
};

type Named = { role: string; display_name: string };
export const configurationName = ({ role, display_name: name }: Named): string => name || role;

const passed = ({ pass_count: passes, fail_count: fails }: Scoring): string => `${passes}/${passes + fails}`;
const coverage = ({ coverage: { received, expected } }: Scoring): string => `${received}/${expected}`;
const differenceText = ({ difference, interval, verdict }: Difference): string =>
  `${points(difference)} points (${range(interval, points)}): ${verdict}`;

/** Returns the progress of a benchmark run in one line. */
export function progressLine({ state, trial_progress: trials, score_progress: scores }: BenchmarkRun): string {
  if (!trials) return state;
  const failed = trials.failed > 0 ? ` (${trials.failed} failed)` : "";
  return `${state}: ${trials.completed} of ${trials.total} trials completed${failed}${scores ? `, ${scores.received} of ${scores.expected} scores` : ""}`;
}

/** Returns the results of a benchmark run as a table, with the summary below. */
export function resultsTable({
  configurations,
  incomplete_reason: reason,
  summary_narrative: narrative,
}: Results): string {
  const rows = configurations.map((configuration) => [
    configurationName(configuration),
    configuration.role,
    passed(configuration.scoring),
    percent(configuration.scoring.pass_rate),
    range(configuration.scoring.interval, percent),
    coverage(configuration.scoring),
    configuration.scoring.difference_to_baseline ? differenceText(configuration.scoring.difference_to_baseline) : "",
    configuration.metrics.avg_wall_time_s == null ? "-" : `${configuration.metrics.avg_wall_time_s.toFixed(1)} s`,
    configuration.metrics.dollars == null ? "-" : `$${configuration.metrics.dollars.toFixed(4)}`,
  ]);
  const parts = [
    table(
      [
        "CONFIGURATION",
        "ROLE",
        "PASSED",
        "PASS RATE",
        "95 % INTERVAL",
        "OUTCOMES",
        "AGAINST THE BASELINE",
        "TIME PER TRIAL",
        "COST",
      ],
      rows,
    ),
  ];
  if (reason) parts.push(`Incomplete: ${reason}`);
  if (narrative) parts.push(narrative);
  return parts.join("\n\n");
}

/** Returns the comparison of two benchmark runs as a table, followed by what makes them less comparable. */
export function comparisonTable(comparison: Comparison): string {
  const rows = comparison.configurations.map((configuration) => [
    configurationName(configuration),
    `${percent(configuration.run.pass_rate)} (${coverage(configuration.run)})`,
    `${percent(configuration.other_run.pass_rate)} (${coverage(configuration.other_run)})`,
    differenceText(configuration.difference),
  ]);
  const titles = (list: readonly string[], text: string): string[] =>
    list.length > 0 ? [`${text}: ${list.join(", ")}`] : [];
  const notes = [
    ...titles(comparison.changed_tasks, "Tasks with other content"),
    ...titles(comparison.tasks_only_in_run, "Tasks only in this run"),
    ...titles(comparison.tasks_only_in_other_run, "Tasks only in the other run"),
  ];
  return [
    table(["CONFIGURATION", "PASS RATE (OUTCOMES)", "OTHER RUN", "DIFFERENCE (95 % INTERVAL)"], rows),
    ...notes,
  ].join("\n");
}

/**
 * Returns why results do not meet the conditions of a command; empty when they do. `belowPercent` is a pass rate in
 * percent.
 */
export function unmetConditions(given: {
  results?: Results;
  comparison?: Comparison | undefined;
  belowPercent?: number | undefined;
}): string[] {
  const { results, comparison, belowPercent } = given;
  const ended =
    results && results.run_state !== "completed" ? [`The benchmark run is ${results.run_state}, not completed.`] : [];
  const below = (results?.configurations ?? []).flatMap((configuration) => {
    const { pass_rate: rate } = configuration.scoring;
    if (belowPercent === undefined || (rate !== null && rate * 100 >= belowPercent)) return [];
    return [
      rate === null
        ? `${configurationName(configuration)} has no outcome.`
        : `The pass rate of ${configurationName(configuration)} is ${percent(rate)}, below ${belowPercent} %.`,
    ];
  });
  const worse = (comparison?.configurations ?? []).flatMap((configuration) =>
    configuration.verdict === "worse"
      ? [
          `${configurationName(configuration)} is worse than in the other run: ${points(configuration.difference.difference)} points (${range(configuration.difference.interval, points)}).`,
        ]
      : [],
  );
  return [...ended, ...below, ...worse];
}
