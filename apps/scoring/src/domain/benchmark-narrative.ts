import type { JsonObject } from "@millwright/json";

type Interval = { low: number; high: number; confidence: number } | null;
type Difference = {
  difference: number | null;
  interval: Interval;
  pairs: number;
  differing_pairs: number;
  distinguishable: boolean;
  verdict: string;
};
type Scoring = {
  pass_count: number;
  fail_count: number;
  pass_rate: number | null;
  interval: Interval;
  difference_to_baseline: Difference | null;
};
type Configuration = { role: string; display_name: string; scoring: Scoring; metrics: { dollars: number | null } };
type Results = {
  trial_progress: { total: number; cancelled: number };
  infra_failed_trials: number;
  coverage: { expected: number; received: number; rate: number | null };
  configurations: Configuration[];
  scorers: unknown[];
  run_metrics: { cost_usd: number | null };
};

/**
 * Returns a textual summary of results. It contains only numbers of the results, so the same results give the same
 * text.
 */
export function narrative(results: JsonObject): string {
  const {
    trial_progress: trials,
    infra_failed_trials: infraFailed,
    coverage,
    configurations,
    scorers,
    run_metrics: metrics,
  } = results as unknown as Results;
  const names = configurations.map(
    (configuration, n) => configuration.display_name || `${configuration.role} ${n + 1}`,
  );
  const baseline = names[configurations.findIndex(({ role }) => role === "baseline")];
  return [
    `${plural(trials.total, "trial")} with ${plural(configurations.length, "configuration")} and ${plural(scorers.length, "scorer")}.`,
    `${coverage.received} of ${coverage.expected} expected outcomes are known${coverage.rate === null ? "" : ` (coverage ${percent(coverage.rate)})`}.`,
    ...(infraFailed > 0
      ? [
          `${plural(infraFailed, "trial")} failed for infrastructure reasons and ${infraFailed === 1 ? "has" : "have"} no outcome.`,
        ]
      : []),
    ...(trials.cancelled > 0
      ? [`${plural(trials.cancelled, "trial")} ${trials.cancelled === 1 ? "was" : "were"} cancelled.`]
      : []),
    ...configurations.map(({ scoring }, n) => passSentence(names[n]!, scoring)),
    ...configurations.flatMap(({ scoring }, n) =>
      scoring.difference_to_baseline ? [differenceSentence(names[n]!, baseline!, scoring.difference_to_baseline)] : [],
    ),
    ...(metrics.cost_usd === null ? [] : [`The estimated cost is $${metrics.cost_usd}.`]),
  ].join(" ");
}

function passSentence(
  name: string,
  { pass_count: passed, fail_count: failed, pass_rate: rate, interval }: Scoring,
): string {
  if (rate === null || !interval) return `${name}: no trial has an outcome.`;
  return `${name} passed ${passed} of ${passed + failed} trials (${percent(rate)}, ${ofInterval(interval, percent)}).`;
}

function differenceSentence(
  name: string,
  baseline: string,
  { difference, interval, pairs, differing_pairs: differing, distinguishable, verdict }: Difference,
): string {
  if (difference === null)
    return `${name} and ${baseline} have no pair of trials with outcomes and are not distinguishable.`;
  const size = `${points(difference)} percentage points over ${plural(pairs, "pair")} of trials, of which ${differing} ${differing === 1 ? "differs" : "differ"}`;
  const range = interval ? ` (${ofInterval(interval, points)})` : "";
  const conclusion = distinguishable
    ? `${name} is ${verdict} than ${baseline}`
    : `${name} is not distinguishable from ${baseline}`;
  return `${conclusion}: ${size}${range}.`;
}

const ofInterval = ({ low, high, confidence }: NonNullable<Interval>, show: (share: number) => string): string =>
  `${Math.round(confidence * 100)} % interval ${show(low)} to ${show(high)}`;

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const points = (share: number): string => `${share > 0 ? "+" : ""}${(share * 100).toFixed(1)}`;
const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;
