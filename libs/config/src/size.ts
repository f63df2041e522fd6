const UNIT_BYTES: Readonly<Record<string, number>> = { "": 1, K: 1_024, M: 1_024 ** 2, G: 1_024 ** 3, T: 1_024 ** 4 };

/**
 * Parses a size such as "512M", "4G", "1.5GiB" or "1048576" as bytes, with 1,024 per unit; undefined if it is invalid.
 */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/.exec(text.trim());
  const unitBytes = UNIT_BYTES[match?.[2] ?? ""];
  const bytes = match && unitBytes !== undefined ? Math.round(Number(match[1]) * unitBytes) : undefined;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}
