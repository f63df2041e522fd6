import { bar, percent, sparkline, table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { textOption, type Cli, type Command } from "../command.ts";
import {
  durationText,
  NAMED_FACTORY,
  PERIOD,
  periodText,
  rangeQuery,
  rangeText,
  namedFactoryPath,
  type Ranged,
} from "../metrics-text.ts";

type Count = { total: number; series?: number[] };
type Mean = { mean: number | null; series?: (number | null)[] };
type Funnel = { total_merged: number; factory_merged: number; factory_merged_observed: number; rate: number | null };
type Impact = { additions: number; deletions: number; merged_pr_count: number; measured_pr_count: number };
type Stage = { median_seconds: number | null; measured_pr_count: number };
type Latency = {
  kickoff_to_pr: Stage;
  pr_to_first_review: Stage;
  first_review_to_merge: Stage;
  kickoff_to_merge: Stage;
};
type Metrics = Ranged & {
  run_count: Count;
  pr_count: Count;
  merged_pr_count: Count;
  average_human_interactions_per_pr: Mean;
  autonomy_funnel: Funnel & { series?: Funnel[] };
  impact: Impact & { series?: Impact[] };
  pr_latency: Latency & { merged_pr_count: number; series?: Latency[] };
};
type Group = { key: string; label?: string; total: number; series?: number[] };
type Breakdown = Ranged & { group_by: string; total: Count; root_run_count: Count; groups: Group[] };

const STAGES = [
  ["kickoff_to_pr", "kickoff to pull request, median"],
  ["pr_to_first_review", "pull request to first review, median"],
  ["first_review_to_merge", "first review to merge, median"],
  ["kickoff_to_merge", "kickoff to merge, median"],
] as const;

const shareText = (part: number, whole: number): string => `${part} of ${whole}`;

function metricsText(cli: Cli, metrics: Metrics): string {
  const {
    autonomy_funnel: funnel,
    impact,
    pr_latency: latency,
    average_human_interactions_per_pr: interactions,
  } = metrics;
  const row = (name: string, value: string, of: string, series?: readonly (number | null)[]): string[] => [
    name,
    value,
    of,
    series ? sparkline(series, cli.isPlain) : "",
  ];
  const count = (name: string, { total, series }: Count): string[] => row(name, String(total), "", series);
  const stage = (key: (typeof STAGES)[number][0], name: string): string[] => {
    const { median_seconds: median, measured_pr_count: measured } = latency[key];
    return row(
      name,
      durationText(median),
      shareText(measured, latency.merged_pr_count),
      latency.series?.map((entry) => entry[key].median_seconds),
    );
  };
  const { additions, deletions } = impact;
  const lines = impact.series?.map((entry) => entry.additions + entry.deletions);
  const rates = funnel.series?.map(({ rate }) => rate);
  const merges = funnel.series?.map((entry) => entry.factory_merged);
  const rows = [
    count("runs", metrics.run_count),
    count("pull requests", metrics.pr_count),
    count("opened and merged by now", metrics.merged_pr_count),
    row("human interactions per pull request", interactions.mean?.toFixed(1) ?? "-", "", interactions.series),
    row(
      "merged by the factory",
      String(funnel.factory_merged),
      shareText(funnel.factory_merged, funnel.total_merged),
      merges,
    ),
    row("autonomy", percent(funnel.rate), shareText(funnel.factory_merged_observed, funnel.factory_merged), rates),
    row(
      "merged lines",
      `+${additions} -${deletions}`,
      shareText(impact.measured_pr_count, impact.merged_pr_count),
      lines,
    ),
    ...STAGES.map(([key, name]) => stage(key, name)),
  ];
  return [rangeText(metrics), table(["METRIC", "VALUE", "MEASURED", periodText(metrics)], rows)].join("\n");
}

function breakdownText(cli: Cli, breakdown: Breakdown): string {
  const most = Math.max(0, ...breakdown.groups.map(({ total }) => total));
  const row = ({ key, label, total, series }: Group): string[] => [
    label ?? key,
    String(total),
    bar(total, most, cli.isPlain),
    series ? sparkline(series, cli.isPlain) : "",
  ];
  const all = `${breakdown.total.total} runs, ${breakdown.root_run_count.total} of them root runs`;
  return [
    rangeText(breakdown),
    all,
    table([breakdown.group_by.toUpperCase(), "RUNS", "", periodText(breakdown)], breakdown.groups.map(row)),
  ].join("\n");
}

/** What the runs of a factory produce. */
export const metricsCommands: Command[] = [
  {
    words: "metrics",
    args: ["[FACTORY]"],
    options: { ...NAMED_FACTORY, ...PERIOD, by: { type: "string", choices: CHOICES.runDimensions } },
    summary:
      "Show a factory's runs, pull requests, autonomy and latency between --since and --until (default: the last 30 days), per --period; " +
      "--by shows runs by one dimension.",
    run: async (cli, [factory], values) => {
      const by = textOption(values, "by");
      const path = await namedFactoryPath(cli, values, factory, "metrics");
      if (by === undefined) {
        const metrics = await cli.api().get<Metrics>(path, rangeQuery(values));
        return cli.show(metrics, () => metricsText(cli, metrics));
      }
      const breakdown = await cli
        .api()
        .get<Breakdown>(`${path}/run-breakdown`, { ...rangeQuery(values), group_by: by });
      cli.show(breakdown, () => breakdownText(cli, breakdown));
    },
  },
];
