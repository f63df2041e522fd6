import { printable } from "./printable.ts";

/**
 * Returns a plain text table: columns as wide as their widest cell, two spaces between, no trailing blanks. Each row is
 * one line, whatever its cells contain.
 */
export function table(headings: readonly string[], cells: readonly (readonly string[])[]): string {
  const rows = cells.map((row) => row.map((cell) => printable(cell).replace(/\s*\n\s*/g, " ")));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  return [line(headings), ...rows.map(line)].join("\n");
}
