import { decimalOf } from "./decimal.ts";
import { exactText, isRawNumber } from "./exact-numbers.ts";
import type { Decimal, Scalar } from "./filter.ts";

/** A delivered body, ready for evaluation. Opaque: numbers that a float would change are stored as decimals. */
export type Payload = { readonly json: unknown };

/** A number that JSON.parse would have rounded. */
class Exact implements Decimal {
  readonly decimal: string;
  constructor(text: string) {
    this.decimal = decimalOf(text).decimal;
  }
}

/** Decimals of up to 15 digits without an exponent are distinct floats; only others need exact parsing. */
const MAY_BE_ROUNDED = /[\d.]{16}|\d[eE][+-]?\d/;

/**
 * Parses a body. Of equal keys the last one wins. Undefined if it is not valid JSON in UTF-8.
 *
 * Throws RangeError for a body with long numbers whose nesting is too deep for exact parsing (thousands of levels).
 */
export function parsePayload(bytes: Uint8Array): Payload | undefined {
  const text = decode(bytes);
  if (text === undefined) return undefined;
  try {
    return { json: MAY_BE_ROUNDED.test(text) ? JSON.parse(text, exactly) : JSON.parse(text) };
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Returns whether bytes are one JSON value in UTF-8, at any depth. */
export function isJson(bytes: Uint8Array): boolean {
  const text = decode(bytes);
  if (text === undefined) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A byte order mark is not JSON, and invalid bytes are not replaced. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function exactly(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" && context?.source !== undefined ? new Exact(context.source) : value;
}

/** Returns the comparable value of a scalar; undefined for objects and arrays. */
export function scalarOf(value: unknown): Scalar | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return decimalOf(String(value));
  return value instanceof Exact ? value : undefined;
}

/** As above for a value of a filter, where a number that is not a float is a raw number. */
export function filterScalarOf(value: unknown): Scalar | undefined {
  const text = exactText(value);
  return text === undefined ? scalarOf(value) : decimalOf(text);
}

export const sameScalar = (a: Scalar, b: Scalar): boolean =>
  a !== null && b !== null && typeof a === "object" && typeof b === "object" ? a.decimal === b.decimal : a === b;

export const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null &&
  typeof value === "object" &&
  !Array.isArray(value) &&
  !(value instanceof Exact) &&
  !isRawNumber(value);
