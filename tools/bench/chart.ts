import { groupedByScenario } from "./report.ts";
import type { Row } from "./results.ts";

const WIDTH = 820;
const LABEL = 390;
const BAR = 18;
const GAP = 8;
const OURS = { standalone: "#2f6f4f", processes: "#7fb295" } as const;

/** Returns a chart with the rates as bars. Each scenario has its own scale. */
export function chartOf(rows: readonly Row[]): string {
  const shown = groupedByScenario(rows).filter((row) => row.perSecond !== undefined);
  const bars = shown.map((row, n) => {
    const most = Math.max(...shown.filter(({ what }) => what === row.what).map(({ perSecond = 0 }) => perSecond));
    const width = Math.max(1, Math.round(((row.perSecond ?? 0) / most) * (WIDTH - LABEL - 90)));
    const y = GAP + n * (BAR + GAP);
    const fill = row.who === "millwright" ? OURS[row.on] : "#b8b8b0";
    return [
      `<text x="${LABEL - 8}" y="${y + 13}" text-anchor="end">${escape(`${row.what} · ${row.who}${row.on === "processes" ? ", processes" : ""}`)}</text>`,
      `<rect x="${LABEL}" y="${y}" width="${width}" height="${BAR}" fill="${fill}"/>`,
      `<text x="${LABEL + width + 6}" y="${y + 13}">${row.perSecond}/s</text>`,
    ].join("");
  });
  const height = GAP + shown.length * (BAR + GAP);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>${bars.join("\n")}</svg>\n`;
}

const escape = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
