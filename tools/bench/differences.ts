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

/**
 * Compares the figures that both revisions have measured in at least one turn. A figure of 0, such as the WAL of a
 * read, has no ratio.
 */
export function differencesOf(turns: readonly Turn[]): Difference[] {
  const pairs = turns.flatMap(({ before, after }) =>
    after.rows.flatMap((row) => {
      const other = before.rows.find((found) => keyOf(found) === keyOf(row));
      return other ? [{ row, other }] : [];
    }),
  );
  return [...Map.groupBy(pairs, ({ row }) => keyOf(row)).values()].flatMap((same) =>
    Object.entries(FIGURES).flatMap(([figure, read]) => {
      const ratios = same.flatMap(({ row, other }) => {
        const [ours, theirs] = [read(row), read(other)];
        return ours && theirs ? [ours / theirs] : [];
      });
      if (ratios.length === 0) return [];
      const { what, who, on } = same[0]!.row;
      const range = [round(Math.min(...ratios)), round(Math.max(...ratios))] as const;
      return [{ what, who, on, figure, median: round(median(ratios)), range }];
    }),
  );
}

const keyOf = ({ what, who, on }: Row): string => JSON.stringify([what, who, on]);

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
