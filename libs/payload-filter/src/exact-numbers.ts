import { decimalOf } from "./decimal.ts";

/** A number that a float would change, as stored filters have it: floats are all that protobuf's Struct and most readers of JSON know. */
export type StoredNumber = { readonly $decimal: string };

type RawNumber = { readonly rawJSON: string };
/** Not in TypeScript's library yet: values that `JSON.stringify` writes as they are. */
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(this: void, text: string): RawNumber;
  isRawJSON(this: void, value: unknown): value is RawNumber;
};
type Parse = (
  text: string,
  reviver: (key: string, value: unknown, context?: { source?: string }) => unknown,
) => unknown;

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Whether a reader of floats gives this number as it is written. Integers beyond 2^53 count as changed: after such a reader nobody can tell. */
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

/** Parses JSON; `JSON.stringify` writes every number of the result as it was. Errors: SyntaxError, and RangeError for deep nesting. */
export const parseExactly = (text: string): unknown => parse(text, rawJSON);

/** Parses JSON into plain values: numbers that a float would change become `StoredNumber`. Errors: as `parseExactly`. */
export const parseStored = (text: string): unknown => parse(text, storedNumber);

/** A number as filters store it, from its text as a JSON number. */
export const storedNumber = (text: string): number | StoredNumber =>
  isFloat(text) ? Number(text) : { $decimal: text };

/** The text of a number that is no float; undefined for any other value. */
export function exactText(value: unknown): string | undefined {
  if (isRawJSON(value)) return JSON_NUMBER.test(value.rawJSON) ? value.rawJSON : undefined;
  const { $decimal: text, ...others } = (value ?? {}) as { $decimal?: unknown };
  return typeof text === "string" && JSON_NUMBER.test(text) && Object.keys(others).length === 0 ? text : undefined;
}

export const isRawNumber = (value: unknown): boolean => isRawJSON(value);

/** A stored filter as its author wrote it: `JSON.stringify` writes its numbers as they are. Only sets have numbers. */
export function withExactNumbers(filter: unknown): unknown {
  if (Array.isArray(filter)) return filter.map((value: unknown) => written(value));
  if (filter === null || typeof filter !== "object" || isRawJSON(filter)) return filter;
  return Object.fromEntries(Object.entries(filter).map(([key, value]) => [key, withExactNumbers(value)]));
}

function written(value: unknown): unknown {
  const text = exactText(value);
  return text === undefined ? withExactNumbers(value) : rawJSON(text);
}
