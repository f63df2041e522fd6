const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"] as const;
const LEVELS = { plain: "_.-=+*#@", blocks: "▁▂▃▄▅▆▇█" } as const;
const WIDTH = 20;

/**
 * Returns a bar whose length is the share that `value` is of `most`; plain ASCII if `isPlain`. A value above 0 is never
 * an empty bar.
 */
export function bar(value: number, most: number, isPlain: boolean, width = WIDTH): string {
  if (value <= 0 || most <= 0) return "";
  const cells = Math.min(1, value / most) * width;
  if (isPlain) return "#".repeat(Math.max(1, Math.round(cells)));
  const eighths = Math.max(1, Math.round(cells * 8));
  return "█".repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!;
}

/** Returns a line of one character per value, from 0 to the largest; null is a blank. Plain ASCII if `isPlain`. */
export function sparkline(values: readonly (number | null)[], isPlain: boolean): string {
  const levels = isPlain ? LEVELS.plain : LEVELS.blocks;
  const most = Math.max(0, ...values.map((value) => value ?? 0));
  const level = (value: number): string =>
    levels[most === 0 ? 0 : Math.round((Math.max(0, value) / most) * (levels.length - 1))]!;
  return values.map((value) => (value === null ? " " : level(value))).join("");
}
