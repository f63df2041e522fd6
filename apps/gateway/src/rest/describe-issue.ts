import type { z } from "zod";

const SHOWN_MAX = 60;

/** Returns a received value for a message, shortened. Not for members whose values are secrets. */
export const quoted = (input: unknown): string => (JSON.stringify(input) ?? "undefined").slice(0, SHOWN_MAX);

/**
 * Returns the message of a failed validation: what is wrong, the limit, and what was received. Received texts are not
 * repeated, because they can be secrets; their length is. Returns undefined for zod's own message. Messages that a
 * schema declares have priority over it.
 */
export function describeIssue(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is required" : `must be ${issue.expected} (got ${kindOf(issue.input)})`;
    case "invalid_value":
      return issue.input === undefined ? `is required: ${choices(issue.values)}` : `must be ${choices(issue.values)}`;
    case "too_small":
      return `must ${amount(issue.origin, issue.inclusive ? "at least" : "more than", issue.minimum)} (got ${sizeOf(issue.input)})`;
    case "too_big":
      return `must ${amount(issue.origin, issue.inclusive ? "at most" : "less than", issue.maximum)} (got ${sizeOf(issue.input)})`;
    case "invalid_format":
      return issue.pattern === undefined ? `must be a valid ${issue.format}` : `must match ${issue.pattern}`;
    case "unrecognized_keys":
      return `has unknown members: ${issue.keys.join(", ")}. Remove them`;
    default:
      return undefined;
  }
}

const choices = (values: readonly unknown[]): string =>
  values.length === 1 ? quoted(values[0]) : `one of ${values.map(String).join(", ")}`;

const UNITS: Readonly<Record<string, string>> = {
  string: "characters",
  array: "entries",
  set: "entries",
  file: "bytes",
};

function amount(origin: string, bound: string, limit: unknown): string {
  const unit = UNITS[origin];
  return unit === undefined ? `be ${bound} ${String(limit)}` : `have ${bound} ${String(limit)} ${unit}`;
}

function kindOf(input: unknown): string {
  if (input === null) return "null";
  return Array.isArray(input) ? "array" : typeof input;
}

function sizeOf(input: unknown): string {
  if (typeof input === "string" || Array.isArray(input)) return String(input.length);
  return typeof input === "number" || typeof input === "bigint" ? String(input) : kindOf(input);
}
