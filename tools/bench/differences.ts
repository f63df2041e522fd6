import type { Results, Row } from "./results.ts";
import { median, round } from "./samples.ts";
import { table, totalUs } from "./report.ts";

/** Results of both revisions in one turn. */
export type Turn = { readonly before: Results; readonly after: Results };

/** A figure of the working tree divided by that of the other revision: median, lowest and highest over the turns. */
export type Difference = Pick<Row, "what" | "who" | "on"> & {
  readonly figure: string;
  readonly median: number;
  readonly range: readonly [number, number];
};

const FIGURES: Readonly<Record<string, (row: Row) => number | undefined>> = {
  "per second": ({ perSecond }) => perSecond,
  "p50 ms": ({ latencyMs }) => latencyMs?.p50,
  "p99 ms": ({ latencyMs }) => latencyMs?.p99,
  "cpu µs": ({ cost }) => cost && totalUs(cost),
  "WAL bytes": ({ cost }) => cost?.walBytes,
  statements: ({ cost }) => cost?.statements,
};

/** Compares the figures that both revisions have measured in at least one turn. */
export function differencesOf(turns: readonly Turn[]): Difference[] {
  const ratios = new Map<string, { readonly row: Row; readonly figure: string; readonly values: number[] }>();
  for (const { before, after } of turns) {
    for (const row of after.rows) {
      const other = before.rows.find(({ what, who, on }) => what === row.what && who === row.who && on === row.on);
      if (!other) continue;
      for (const [figure, read] of Object.entries(FIGURES)) {
        const [ours, theirs] = [read(row), read(other)];
        if (ours === undefined || !theirs) continue;
        const key = JSON.stringify([row.what, row.who, row.on, figure]);
        if (!ratios.has(key)) ratios.set(key, { row, figure, values: [] });
        ratios.get(key)!.values.push(ours / theirs);
      }
    }
  }
  return [...ratios.values()].map(({ row: { what, who, on }, figure, values }) => ({
    ...{ what, who, on, figure },
    median: round(median(values)),
    range: [round(Math.min(...values)), round(Math.max(...values))],
  }));
}

/** Returns the differences as a text table, one line per figure. */
export const tableOfDifferences = (differences: readonly Difference[]): string =>
  table(
    ["what", "who", "on", "figure", "ratio", "lowest", "highest"],
    differences.map(({ what, who, on, figure, median: middle, range: [lowest, highest] }, n) => [
      what === differences[n - 1]?.what ? "" : what,
      ...[who, on, figure],
      ...[middle, lowest, highest].map(String),
    ]),
    4,
  );
