import type { Results, Row } from "./results.ts";

/** The results as a table for people. */
export function tableOf({ rows, memory, targets, seconds, cores, node }: Results): string {
  const lines = rows.map((row, n) => [row.what === rows[n - 1]?.what ? "" : row.what, row.who, ...figures(row)]);
  const checks = targets.map(({ name, wanted, measured, isMet }) => [isMet ? "kept" : "MISSED", name, wanted, measured]);
  return [
    table(["what", "who", "per second", "p50 ms", "p95 ms", "p99 ms", "ours / theirs"], lines, 2),
    ...(memory.length > 0 ? [table(["idle process", "resident MB"], memory.map(({ name, residentMb }) => [name, String(residentMb)]), 1)] : []),
    ...(checks.length > 0 ? [table(["target", "of", "wanted", "measured"], checks, 4)] : []),
    `${cores} cores, Node ${node}, ${Math.round(seconds)} s.`,
  ].join("\n\n");
}

const figures = ({ perSecond, latencyMs, ours }: Row): string[] =>
  [perSecond, latencyMs?.p50, latencyMs?.p95, latencyMs?.p99, ours].map((value) => (value === undefined ? "" : String(value)));

/** Columns from `numbersFrom` on are aligned to the right. */
function table(head: readonly string[], lines: readonly string[][], numbersFrom: number): string {
  const widths = head.map((title, n) => Math.max(title.length, ...lines.map((line) => line[n]?.length ?? 0)));
  const row = (cells: readonly string[]): string => cells.map((cell, n) => (n < numbersFrom ? cell.padEnd(widths[n]!) : cell.padStart(widths[n]!))).join("  ").trimEnd();
  return [row(head), widths.map((width) => "-".repeat(width)).join("  "), ...lines.map(row)].join("\n");
}
