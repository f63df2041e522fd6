const UNSTORABLE = /[\p{Surrogate}\0]/gu;

/** Text as PostgreSQL can keep it: no NUL, no lone surrogates. What cannot be kept becomes U+FFFD. */
export const storable = (text: string): string => text.replace(UNSTORABLE, "\uFFFD");

/** A JSON value whose texts, keys included, can be kept. */
export function storableJson<T>(value: T): T {
  if (typeof value === "string") return storable(value) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => storableJson(item)) as T;
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [storable(key), storableJson(inner)])) as T;
}
