import { invalidArgument } from "@millwright/errors";
import { UNKNOWN_KEY } from "./unknown-key.ts";

export const RUN_DIMENSIONS = ["agent_type", "status", "source", "root_vs_subrun", "model", "harness"] as const;
export type RunDimension = (typeof RUN_DIMENSIONS)[number];

/** Runs of one period that have the same key; an empty key: not known. `period` counts from 1. */
export type RunCount = {
  readonly period: number;
  readonly key: string;
  readonly isRoot: boolean;
  readonly runs: number;
};
/** `series` has one entry per period. An empty `label`: the key is its own label. */
export type RunGroup = {
  readonly key: string;
  readonly label: string;
  readonly total: number;
  readonly series: readonly number[];
};

/** Runs in which agents improve their own definitions form a group of their own, whatever the type of the agent. */
export const SELF_IMPROVEMENT = "SELF_IMPROVEMENT";

/** Reads a grouping. Errors: group_by_invalid. */
export function readRunDimension(text: string): RunDimension {
  const dimension = RUN_DIMENSIONS.find((known) => known === text);
  if (dimension) return dimension;
  const allowed = `${RUN_DIMENSIONS.slice(0, -1).join(", ")} or ${RUN_DIMENSIONS.at(-1)}`;
  throw invalidArgument("group_by_invalid", `group_by must be ${allowed} (got ${JSON.stringify(text)}).`);
}

/** Returns the number of runs per period. */
export function sumRuns(counts: readonly RunCount[], periods: number): number[] {
  const series = new Array<number>(periods).fill(0);
  for (const { period, runs } of counts) series[period - 1]! += runs;
  return series;
}

/** Returns the groups of the counts: largest first, then by key; what is not known is last. */
export function groupRuns(counts: readonly RunCount[], dimension: RunDimension, periods: number): RunGroup[] {
  const byKey = new Map<string, RunCount[]>();
  for (const count of counts) {
    const key = count.key || UNKNOWN_KEY;
    const group = byKey.get(key);
    if (group) group.push(count);
    else byKey.set(key, [count]);
  }
  return [...byKey]
    .map(([key, ofKey]) => {
      const series = sumRuns(ofKey, periods);
      const label = dimension === "agent_type" && key === SELF_IMPROVEMENT ? "Self-improvement" : "";
      return { key, label, total: series.reduce((sum, runs) => sum + runs, 0), series };
    })
    .filter(({ total }) => total > 0)
    .toSorted(byTotal);
}

const byTotal = (a: RunGroup, b: RunGroup): number =>
  Number(a.key === UNKNOWN_KEY) - Number(b.key === UNKNOWN_KEY) || b.total - a.total || (a.key < b.key ? -1 : 1);
