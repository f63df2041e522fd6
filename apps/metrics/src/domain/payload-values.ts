import { at, textAt } from "@millwright/code-host-events";

const INT4_MAX = 2_147_483_647;
const TEXT_LENGTH_MAX = 1000;
const EARLIEST_MS = Date.UTC(1970, 0, 1);
const LATEST_MS = Date.UTC(9999, 11, 31);

/** Returns the time at a path; undefined if there is none. GitLab writes some times as "2015-05-17 18:21:36 UTC". */
export function timeAt(value: unknown, ...path: readonly string[]): Date | undefined {
  const ms = Date.parse(textAt(value, ...path));
  return ms >= EARLIEST_MS && ms <= LATEST_MS ? new Date(ms) : undefined;
}

/** Returns the count at a path; undefined if there is none that a column can store. */
export function countAt(value: unknown, ...path: readonly string[]): number | undefined {
  const found = at(value, ...path);
  return typeof found === "number" && Number.isInteger(found) && found >= 0 && found <= INT4_MAX ? found : undefined;
}

/** Returns the identifier at a path in a form that is part of a key; "" if there is none. */
export function idAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  if (typeof found === "number" && Number.isSafeInteger(found)) return String(found);
  return typeof found === "string" && /^[\w.-]{1,100}$/.test(found) ? found : "";
}

/** Returns the text at a path without what PostgreSQL cannot store, cut to a length that no code host exceeds. */
export const storableTextAt = (value: unknown, ...path: readonly string[]): string =>
  textAt(value, ...path)
    .replaceAll("\0", "")
    .slice(0, TEXT_LENGTH_MAX);
