import { decimalOf } from "./decimal.ts";

/**
 * A number that a float would change, as stored in filters: protobuf's Struct and most JSON parsers know floats only.
 */
export type StoredNumber = { readonly $decimal: string };

type RawNumber = { readonly rawJSON: string };
/** Missing in TypeScript's library: values that `JSON.stringify` writes verbatim. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(this: void, text: string): RawNumber;
  isRawJSON(this: void, value: unknown): value is RawNumber;
};
type Parse = (
  text: string,
  reviver: (key: string, value: unknown, context?: { source?: string }) => unknown,
) => unknown;

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Returns whether a float represents this number exactly. Integers beyond 2^53 count as inexact, since a float reader
 * cannot distinguish them.
 */
const isFloat = (text: string): boolean => {
  const value = Number(text);
  const isSafe = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
  return isSafe && decimalOf(text).decimal === decimalOf(String(value)).decimal;
};

/**
 * Parses JSON so that `JSON.stringify` writes every number unchanged. Errors: SyntaxError, and RangeError for deep
 * nesting.
 */
export const parseExactly = (text: string): unknown =>
  (JSON.parse as Parse)(text, (_key, value, { source } = {}) =>
    typeof value === "number" && source !== undefined ? exactNumber(source) : value,
  );

/**
 * Parses JSON into plain values: numbers that a float would change become `StoredNumber`. An object of the text in that
 * form is renamed, so that it is not taken for a number; no valid filter has one. Errors: as `parseExactly`.
 */
export const parseStored = (text: string): unknown =>
  (JSON.parse as Parse)(text, (_key, value, { source } = {}) => {
    if (typeof value === "number") return source === undefined || isFloat(source) ? value : { $decimal: source };
    return isStoredNumber(value) ? { $$decimal: value.$decimal } : value;
  });

/** Returns a number from its JSON text, such that `JSON.stringify` writes it unchanged. */
export const exactNumber = (text: string): unknown => (isFloat(text) ? Number(text) : rawJSON(text));

/** Returns the text of a number that is not a float; undefined for any other value. */
export const exactText = (value: unknown): string | undefined =>
  isRawJSON(value) && JSON_NUMBER.test(value.rawJSON) ? value.rawJSON : undefined;

export const isRawNumber = (value: unknown): boolean => isRawJSON(value);

function isStoredNumber(value: unknown): value is StoredNumber {
  if (value === null || typeof value !== "object") return false;
  const { $decimal: text } = value as { $decimal?: unknown };
  return typeof text === "string" && JSON_NUMBER.test(text) && Object.keys(value).length === 1;
}

/** Returns a stored filter such that `JSON.stringify` writes its numbers as the author did. */
export function withExactNumbers(filter: unknown): unknown {
  if (Array.isArray(filter))
    return filter.map((value: unknown) => (isStoredNumber(value) ? rawJSON(value.$decimal) : withExactNumbers(value)));
  if (filter === null || typeof filter !== "object" || isRawJSON(filter)) return filter;
  return Object.fromEntries(Object.entries(filter).map(([key, value]) => [key, withExactNumbers(value)]));
}
