import { bar, sparkline, table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { textOption, UsageError, type Cli, type Command, type Values } from "../command.ts";
import {
  dollarsText,
  NAMED_FACTORY,
  namedFactoryPath,
  PERIOD,
  periodText,
  rangeQuery,
  rangeText,
  type Ranged,
} from "../metrics-text.ts";

type Dollars = { inference: number; compute: number; platform: number; total: number };
type Means = {
  mean: number | null;
  inference_mean: number | null;
  compute_mean: number | null;
  platform_mean: number | null;
};
type PerPr = Means & { pr_count: number; dollars: Dollars };
type Coverage = {
  model_calls: number;
  priced_model_calls: number;
  compute_intervals: number;
  priced_compute_intervals: number;
};
type Group = { key: string; label: string; deleted: boolean; dollars: Dollars; series?: Dollars[] };
type Breakdown = Ranged & {
  group_by: string;
  total: Dollars & { series?: Dollars[] };
  groups: Group[];
  coverage: Coverage;
};
type Costed = { url: string; title: string | null; dollars: Dollars; models: { model_id: string; share: number }[] };
type Bucket = { size: string; pr_count: number; mean: number | null; series?: (number | null)[] };
type BySize = Ranged & { pr_count: number; sized_pr_count: number; buckets: Bucket[] };

const COMPONENTS = ["inference", "compute", "platform", "total"] as const;

function perPrText(cli: Cli, cost: PerPr & Ranged & { series?: PerPr[] }): string {
  const row = (name: (typeof COMPONENTS)[number], mean: keyof Means): string[] => {
    const series = cost.series?.map((entry) => entry[mean]);
    return [
      name,
      dollarsText(cost.dollars[name]),
      dollarsText(cost[mean]),
      series ? sparkline(series, cli.isPlain) : "",
    ];
  };
  const rows = [
    row("inference", "inference_mean"),
    row("compute", "compute_mean"),
    row("platform", "platform_mean"),
    row("total", "mean"),
  ];
  const headings = ["COMPONENT", "DOLLARS", "MEAN PER PULL REQUEST", periodText(cost)];
  return [rangeText(cost), `${cost.pr_count} pull requests`, table(headings, rows)].join("\n");
}

function breakdownText(cli: Cli, costs: Breakdown): string {
  const most = Math.max(0, ...costs.groups.map(({ dollars }) => dollars.total));
  const row = (name: string, dollars: Dollars, series: Dollars[] | undefined, chart: string): string[] => {
    const line = series
      ? sparkline(
          series.map(({ total }) => total),
          cli.isPlain,
        )
      : "";
    return [name, ...COMPONENTS.map((component) => dollarsText(dollars[component])), chart, line];
  };
  const rows = costs.groups.map(({ label, deleted, dollars, series }) =>
    row(deleted ? `${label} (deleted)` : label, dollars, series, bar(dollars.total, most, cli.isPlain)),
  );
  const headings = [costs.group_by.toUpperCase(), "INFERENCE", "COMPUTE", "PLATFORM", "TOTAL", "", periodText(costs)];
  return [
    rangeText(costs),
    table(headings, [...rows, row("all", costs.total, costs.total.series, "")]),
    coverageText(costs.coverage),
  ].join("\n");
}

const coverageText = (coverage: Coverage): string =>
  `Known prices: ${coverage.priced_model_calls} of ${coverage.model_calls} model calls, ` +
  `${coverage.priced_compute_intervals} of ${coverage.compute_intervals} compute intervals.`;

function topText(cli: Cli, { data, ...range }: Ranged & { data: Costed[] }): string {
  const most = data[0]?.dollars.total ?? 0;
  const row = ({ url, title, dollars, models }: Costed): string[] => [
    dollarsText(dollars.total),
    bar(dollars.total, most, cli.isPlain),
    url,
    title ?? "",
    models.map((each) => each.model_id).join(", "),
  ];
  return [rangeText(range), table(["DOLLARS", "", "PULL REQUEST", "TITLE", "MODELS"], data.map(row))].join("\n");
}

function bySizeText(cli: Cli, costs: BySize): string {
  const most = Math.max(0, ...costs.buckets.map(({ mean }) => mean ?? 0));
  const rows = costs.buckets.map(({ size, pr_count: count, mean, series }) => [
    size,
    String(count),
    dollarsText(mean),
    bar(mean ?? 0, most, cli.isPlain),
    series ? sparkline(series, cli.isPlain) : "",
  ]);
  const sized = `${costs.sized_pr_count} of ${costs.pr_count} pull requests have a known size`;
  return [rangeText(costs), sized, table(["SIZE", "PULL REQUESTS", "MEAN", "", periodText(costs)], rows)].join("\n");
}

/** Throws `UsageError` if more than one kind of report is asked for, or an option that the report does not take. */
function checkReport(values: Values): void {
  const reports = ["by", "top", "by-size"].filter((name) => values[name] !== undefined);
  if (reports.length > 1) throw new UsageError(`Give one of ${reports.map((name) => `--${name}`).join(", ")}.`);
  if (values["limit"] !== undefined && values["top"] === undefined) throw new UsageError("--limit needs --top.");
  if (values["period"] !== undefined && values["top"] !== undefined) throw new UsageError("--top takes no --period.");
}

/** What the runs of a factory cost. */
export const costCommands: Command[] = [
  {
    words: "costs",
    args: ["[FACTORY]"],
    options: {
      ...NAMED_FACTORY,
      ...PERIOD,
      by: { type: "string", choices: CHOICES.costDimensions },
      top: { type: "boolean" },
      "by-size": { type: "boolean" },
      limit: { type: "string" },
    },
    summary:
      "Show what a pull request of a factory costs on average; --by shows all spend by one dimension, --top the costliest pull requests " +
      "(--limit), --by-size the mean by size.",
    run: async (cli, [factory], values) => {
      checkReport(values);
      const path = await namedFactoryPath(cli, values, factory, "costs");
      const [query, by] = [rangeQuery(values), textOption(values, "by")];
      if (by !== undefined) {
        const costs = await cli.api().get<Breakdown>(`${path}/breakdown`, { ...query, group_by: by });
        return cli.show(costs, () => breakdownText(cli, costs));
      }
      if (values["top"] === true) {
        const top = await cli
          .api()
          .get<Ranged & { data: Costed[] }>(`${path}/per-pr/top`, { ...query, limit: textOption(values, "limit") });
        return cli.show(top, () => topText(cli, top));
      }
      if (values["by-size"] === true) {
        const costs = await cli.api().get<BySize>(`${path}/per-pr/by-size`, query);
        return cli.show(costs, () => bySizeText(cli, costs));
      }
      const cost = await cli.api().get<PerPr & Ranged & { series?: PerPr[] }>(`${path}/per-pr`, query);
      cli.show(cost, () => perPrText(cli, cost));
    },
  },
];
