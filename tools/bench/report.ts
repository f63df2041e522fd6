import type { Cost, Results, Row } from "./results.ts";

/** Returns the results as a text table. Rows of standalone and of separate processes are grouped by scenario. */
export function tableOf({ rows, memory, targets, unmeasured, seconds, cores, node }: Results): string {
  const lines = groupedByScenario(rows).map((row, n, all) => [
    row.what === all[n - 1]?.what ? "" : row.what,
    row.who,
    row.on,
    ...figures(row),
  ]);
  const costs = groupedByScenario(rows).flatMap(({ what, who, on, cost }) =>
    cost ? [[what, who, on, processTimes(cost)]] : [],
  );
  const checks = targets.map(({ on, name, wanted, measured, isMet }) => [
    isMet ? "met" : "MISSED",
    name,
    on,
    wanted,
    measured,
  ]);
  return [
    ...(lines.length > 0
      ? [
          table(
            [
              "what",
              "who",
              "on",
              "per second",
              "p50 ms",
              "p95 ms",
              "p99 ms",
              "ours / theirs",
              "cpu µs",
              "WAL B",
              "stmts",
              "KB / client",
            ],
            lines,
            3,
          ),
        ]
      : []),
    ...(costs.length > 0 ? [table(["cpu µs per operation", "who", "on", "by process"], costs, 4)] : []),
    ...(memory.length > 0
      ? [
          table(
            ["idle process", "on", "resident MB", "own MB"],
            memory.map(({ name, on, residentMb, ownMb }) => [name, on, String(residentMb), String(ownMb)]),
            2,
          ),
        ]
      : []),
    ...(checks.length > 0 ? [table(["target", "of", "on", "wanted", "measured"], checks, 5)] : []),
    ...(unmeasured.length > 0 ? [`Not measured: ${unmeasured.join(", ")}.`] : []),
    `${cores} cores, Node ${node}, ${Math.round(seconds)} s.`,
  ].join("\n\n");
}

/** Returns the rows grouped by what was measured, in the order of the first measurement. */
export const groupedByScenario = (rows: readonly Row[]): Row[] =>
  [...new Set(rows.map(({ what }) => what))].flatMap((what) => rows.filter((row) => row.what === what));

const figures = ({ perSecond, latencyMs, ours, cost, clientKb }: Row): string[] =>
  [
    ...[perSecond, latencyMs?.p50, latencyMs?.p95, latencyMs?.p99, ours],
    ...[cost && Math.round(totalUs(cost)), cost && Math.round(cost.walBytes), cost?.statements, clientKb],
  ].map((value) => (value === undefined ? "" : String(value)));

/** Returns the processor time of an operation, of all processes together, in microseconds. */
export const totalUs = ({ cpuUs }: Cost): number => Object.values(cpuUs).reduce((sum, us) => sum + us, 0);

/** Returns the processor time of each process that an operation uses, without those below a microsecond. */
const processTimes = ({ cpuUs }: Cost): string =>
  Object.entries(cpuUs)
    .filter(([, us]) => us >= 1)
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, us]) => `${name} ${us}`)
    .join(" · ");

/** Formats a table. Columns from `numbersFrom` on are right-aligned. */
export function table(head: readonly string[], lines: readonly string[][], numbersFrom: number): string {
  const widths = head.map((title, n) => Math.max(title.length, ...lines.map((line) => line[n]?.length ?? 0)));
  const row = (cells: readonly string[]): string =>
    cells
      .map((cell, n) => (n < numbersFrom ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!)))
      .join("  ")
      .trimEnd();
  return [row(head), widths.map((width) => "-".repeat(width)).join("  "), ...lines.map(row)].join("\n");
}
