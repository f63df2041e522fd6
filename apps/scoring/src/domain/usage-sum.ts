import type { JsonObject } from "@millwright/json";

/**
 * Returns the sum of the public usage of several runs: numbers are added at any depth, lists are concatenated. Null if
 * no run has usage.
 */
export function sumUsage(usages: readonly (JsonObject | undefined)[]): JsonObject | null {
  const known = usages.filter((usage) => usage !== undefined);
  return known.length > 0 ? known.reduce((sum, usage) => add(sum, usage) as JsonObject) : null;
}

function add(a: unknown, b: unknown): unknown {
  if (a === undefined) return b;
  if (b === undefined) return a;
  if (typeof a === "number" && typeof b === "number") return a + b;
  if (Array.isArray(a) && Array.isArray(b)) return [...a, ...b];
  if (!isObject(a) || !isObject(b)) return b;
  return Object.fromEntries(
    [...new Set([...Object.keys(a), ...Object.keys(b)])].map((key) => [key, add(a[key], b[key])]),
  );
}

const isObject = (value: unknown): value is JsonObject =>
  value !== null && typeof value === "object" && !Array.isArray(value);
