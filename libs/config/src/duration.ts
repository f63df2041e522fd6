const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses a duration such as "250ms", "15s", "5m", "24h" or "7d" as milliseconds; undefined if it is invalid. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  const unitMs = UNIT_MS[match?.[2] ?? ""];
  return match && unitMs !== undefined ? Math.round(Number(match[1]) * unitMs) : undefined;
}
