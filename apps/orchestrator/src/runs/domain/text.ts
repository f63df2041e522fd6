const UNSTORABLE = /[\p{Surrogate}\0]/gu;

/** Returns the text as PostgreSQL can store it: NULs and lone surrogates are replaced by U+FFFD. */
export const storable = (text: string): string => text.replace(UNSTORABLE, "\uFFFD");

/** Returns a JSON value whose texts, including keys, can be stored. */
export function storableJson<T>(value: T): T {
  if (typeof value === "string") return storable(value) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => storableJson(item)) as T;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [storable(key), storableJson(inner)])) as T;
}
