import type { JsonObject } from "@millwright/json";
import { scoringJson } from "./benchmark-difference.ts";
import type { BenchmarkPlan } from "./benchmark-plan.ts";
import { dollars, NO_CREDITS, seconds } from "./benchmark-progress.ts";
import { perFinishedTrial, scorersOf, select, sum, tally, trialCount, type BenchmarkStats } from "./benchmark-stats.ts";

export const METRIC_ARRAYS = ["configuration_metrics", "scorer_metrics", "task_metrics", "tag_metrics"] as const;
export type MetricArray = (typeof METRIC_ARRAYS)[number];

/** Selects the arrays to include and their rows. An absent member selects all rows. */
export type MetricRequest = {
  readonly include: ReadonlySet<MetricArray>;
  readonly configurationUids?: ReadonlySet<string>;
  readonly scorerUids?: ReadonlySet<string>;
};

type RowKey = {
  readonly configuration_uid: string;
  readonly scorer_uid?: string;
  readonly task_uid?: string;
  readonly tag?: string;
};

/**
 * Returns the included arrays. Rows of `configuration_metrics` state correctness; rows of all other arrays are per
 * scorer.
 */
export function metricArrays(
  plan: BenchmarkPlan,
  stats: BenchmarkStats,
  { include, configurationUids, scorerUids }: MetricRequest,
): JsonObject {
  const configurations = plan.configurations.filter(({ uid }) => configurationUids?.has(uid) ?? true);
  const scorers = scorersOf(plan, stats).filter(({ uid }) => scorerUids?.has(uid) ?? true);
  const byTask = statsByTask(stats);
  const tasks = plan.tasks.filter(({ uid }) => byTask.has(uid));
  const tags = [...new Set(tasks.flatMap((task) => task.tags))].sort();
  const perScorer = (subsets: readonly Subset[]): JsonObject[] =>
    configurations.flatMap(({ uid }) =>
      subsets.flatMap(({ key, of }) =>
        scorers.map((scorer) => row(plan, of, { configuration_uid: uid, scorer_uid: scorer.uid, ...key })),
      ),
    );
  const arrays: Record<MetricArray, () => JsonObject[]> = {
    configuration_metrics: () => configurations.map(({ uid }) => row(plan, stats, { configuration_uid: uid })),
    scorer_metrics: () => perScorer([{ key: {}, of: stats }]),
    task_metrics: () => perScorer(tasks.map(({ uid }) => ({ key: { task_uid: uid }, of: byTask.get(uid)! }))),
    tag_metrics: () =>
      perScorer(
        tags.map((tag) => ({
          key: { tag },
          of: joined(tasks.filter((task) => task.tags.includes(tag)).map(({ uid }) => byTask.get(uid)!)),
        })),
      ),
  };
  return Object.fromEntries(METRIC_ARRAYS.filter((name) => include.has(name)).map((name) => [name, arrays[name]()]));
}

/** Stats of a subset of the tasks, and the members that identify the subset in a row. */
type Subset = { readonly key: { readonly task_uid?: string; readonly tag?: string }; readonly of: BenchmarkStats };

/** Groups stats by task once, so that each row does not search all groups. */
function statsByTask({ trials, scores, scorerUids }: BenchmarkStats): Map<string, BenchmarkStats> {
  const scoresByTask = Map.groupBy(scores, ({ taskUid }) => taskUid);
  return new Map(
    [...Map.groupBy(trials, ({ taskUid }) => taskUid)].map(([uid, ofTask]) => [
      uid,
      { trials: ofTask, scores: scoresByTask.get(uid) ?? [], scorerUids },
    ]),
  );
}

const joined = (parts: readonly BenchmarkStats[]): BenchmarkStats => ({
  trials: parts.flatMap(({ trials }) => trials),
  scores: parts.flatMap(({ scores }) => scores),
  scorerUids: parts[0]?.scorerUids ?? [],
});

function row(plan: BenchmarkPlan, stats: BenchmarkStats, key: RowKey): JsonObject {
  const selection = { configurationUid: key.configuration_uid };
  const trials = select(stats.trials, selection);
  const started = sum(trials, (g) => g.started) > 0;
  const time = perFinishedTrial(
    trials,
    sum(trials, (g) => g.wallTimeMs),
  );
  const { interval, ...scoring } = scoringJson(
    tally(plan, stats, key.scorer_uid ?? plan.correctness?.uid ?? "", selection),
  );
  return {
    ...key,
    trial_count: trialCount(trials),
    ...scoring,
    pass_rate_interval: interval!,
    total_credits: started ? NO_CREDITS : null,
    dollars: started ? dollars(sum(trials, (g) => g.costMicros)) : null,
    avg_wall_time_s: time === null ? null : seconds(time),
  };
}
