import { evaluateFilter } from "./evaluate.ts";
import type { PayloadFilter } from "./filter.ts";
import { parsePayload, type Payload } from "./payload.ts";

/** A delivered body; "unreadable" if it is nested too deeply to be evaluated. */
export type ReadPayload = Payload | "unreadable";

/** Parses a body. Undefined if it is not valid JSON in UTF-8. */
export function readPayload(bytes: Uint8Array): ReadPayload | undefined {
  try {
    return parsePayload(bytes);
  } catch {
    return "unreadable";
  }
}

/** The result of a filter with its reason; `failedPaths` as in `Verdict`. */
export type PayloadCheck = {
  readonly passed: boolean;
  readonly detail: string;
  readonly failedPaths: readonly string[];
};

/** Returns whether a body passes a filter, and why. Without a filter, every body passes. */
export function checkPayload(filter: PayloadFilter, payload: ReadPayload): PayloadCheck {
  const passed = (detail: string): PayloadCheck => ({ passed: true, detail, failedPaths: [] });
  const failed = (detail: string, failedPaths: readonly string[] = []): PayloadCheck => ({
    passed: false,
    detail,
    failedPaths,
  });
  if (filter.fields.length === 0) return passed("Without a payload filter every delivery matches.");
  if (payload === "unreadable")
    return failed("The payload is nested too deeply to be evaluated, so it does not match.");
  const { matches, failedPaths } = evaluateFilter(filter, payload);
  if (matches) return passed("Every field of the payload filter matches.");
  return failed(
    `The payload does not match: ${failedPaths.map((path) => path || "the whole body").join(", ")}.`,
    failedPaths,
  );
}
