import { median } from "@millwright/statistics";
import { STAGES, type CycleTime, type Milestones } from "./cycle-time.ts";

export type MergeCounts = {
  readonly merged: number;
  /** Of those merged, how many have no known opening. */
  readonly unopened: number;
  readonly observed: number;
  /** Of those observed. */
  readonly withoutHumanCodeChange: number;
  /** Lines over the pull requests whose both line counts are known. */
  readonly additions: number;
  readonly deletions: number;
  readonly sized: number;
};

/** `medianSeconds`: null if nothing was measured. */
export type LatencyStage = { readonly medianSeconds: number | null; readonly measured: number };

/** The factory's pull requests by when they merged. */
export type Merges = MergeCounts & Readonly<Record<keyof CycleTime, LatencyStage>>;

/** Times in milliseconds, one per pull request; NaN: not known. */
export type MilestoneTimes = Readonly<Record<keyof Milestones, Float64Array>>;

/**
 * What merged in each period. `times` begin with the pull requests of the first period; each period has `merged` of
 * them.
 */
export type MergedPullRequests = { readonly periods: readonly MergeCounts[]; readonly times: MilestoneTimes };

export const NO_MERGES: MergeCounts = {
  merged: 0,
  unopened: 0,
  observed: 0,
  withoutHumanCodeChange: 0,
  additions: 0,
  deletions: 0,
  sized: 0,
};

/** Returns the merges of all periods and of each, with the medians of their stages. */
export function measureMerges({ periods, times }: MergedPullRequests): { total: Merges; periods: Merges[] } {
  const durations = new Float64Array(times.kickoffAt.length);
  const stageOf = (name: keyof CycleTime) => measureStage(STAGES[name], periods, times, durations);
  const stages = {
    kickoffToPr: stageOf("kickoffToPr"),
    prToFirstReview: stageOf("prToFirstReview"),
    firstReviewToMerge: stageOf("firstReviewToMerge"),
    kickoffToMerge: stageOf("kickoffToMerge"),
  };
  const mergesOf = (counts: MergeCounts, read: (stage: MeasuredStage) => LatencyStage): Merges => ({
    ...counts,
    kickoffToPr: read(stages.kickoffToPr),
    prToFirstReview: read(stages.prToFirstReview),
    firstReviewToMerge: read(stages.firstReviewToMerge),
    kickoffToMerge: read(stages.kickoffToMerge),
  });
  return {
    total: mergesOf(periods.reduce(addCounts, NO_MERGES), ({ total }) => total),
    periods: periods.map((counts, index) => mergesOf(counts, (stage) => stage.periods[index]!)),
  };
}

const addCounts = (a: MergeCounts, b: MergeCounts): MergeCounts => ({
  merged: a.merged + b.merged,
  unopened: a.unopened + b.unopened,
  observed: a.observed + b.observed,
  withoutHumanCodeChange: a.withoutHumanCodeChange + b.withoutHumanCodeChange,
  additions: a.additions + b.additions,
  deletions: a.deletions + b.deletions,
  sized: a.sized + b.sized,
});

type MeasuredStage = { readonly total: LatencyStage; readonly periods: readonly LatencyStage[] };

/**
 * Writes the durations of a stage into one array, of which each period has a part: an array per period and stage would
 * cost more than the medians.
 */
function measureStage(
  [start, end]: (typeof STAGES)[keyof CycleTime],
  periods: readonly MergeCounts[],
  times: MilestoneTimes,
  durations: Float64Array,
): MeasuredStage {
  const [starts, ends] = [times[start], times[end]];
  let [read, measured] = [0, 0];
  const stages = periods.map(({ merged }) => {
    const first = measured;
    for (const last = read + merged; read < last; read++) {
      const duration = ends[read]! - starts[read]!;
      if (duration >= 0) durations[measured++] = duration;
    }
    return latencyOf(durations.subarray(first, measured));
  });
  return { total: latencyOf(durations.subarray(0, measured)), periods: stages };
}

function latencyOf(durations: Float64Array): LatencyStage {
  const milliseconds = median(durations);
  return { medianSeconds: milliseconds === null ? null : milliseconds / 1000, measured: durations.length };
}
