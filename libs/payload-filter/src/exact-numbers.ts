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

const parse = (text: string, exactly: (source: string) => unknown): unknown =>
  (JSON.parse as Parse)(text, (_key, value, context) =>
    typeof value === "number" && context?.source !== undefined && !isFloat(context.source)
      ? exactly(context.source)
      : value,
  );

/**
 * Parses JSON so that `JSON.stringify` writes every number unchanged. Errors: SyntaxError, and RangeError for deep
 * nesting.
 */
export const parseExactly = (text: string): unknown => parse(text, rawJSON);

/**
 * Parses JSON into plain values: numbers that a float would change become `StoredNumber`. Errors: as `parseExactly`.
 */
export const parseStored = (text: string): unknown => parse(text, storedNumber);

/** Returns the stored form of a number from its JSON text. */
export const storedNumber = (text: string): number | StoredNumber =>
  isFloat(text) ? Number(text) : { $decimal: text };

/** Returns the text of a number that is not a float; undefined for any other value. */
export function exactText(value: unknown): string | undefined {
  if (isRawJSON(value)) return JSON_NUMBER.test(value.rawJSON) ? value.rawJSON : undefined;
  const { $decimal: text, ...others } = (value ?? {}) as { $decimal?: unknown };
  return typeof text === "string" && JSON_NUMBER.test(text) && Object.keys(others).length === 0 ? text : undefined;
}

export const isRawNumber = (value: unknown): boolean => isRawJSON(value);

/** Returns a stored filter such that `JSON.stringify` writes its numbers as the author did. */
export function withExactNumbers(filter: unknown): unknown {
  if (Array.isArray(filter)) return filter.map((value: unknown) => written(value));
  if (filter === null || typeof filter !== "object" || isRawJSON(filter)) return filter;
  return Object.fromEntries(Object.entries(filter).map(([key, value]) => [key, withExactNumbers(value)]));
}

function written(value: unknown): unknown {
  const text = exactText(value);
  return text === undefined ? withExactNumbers(value) : rawJSON(text);
}
