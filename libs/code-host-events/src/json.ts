/** Reads payloads of unknown shape: an absent value or one of another type is undefined. */

/** The value at a path of member names. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path)
    found =
      typeof found === "object" && found !== null && Object.hasOwn(found, name)
        ? (found as Record<string, unknown>)[name]
        : undefined;
  return found;
}

/** "" when there is no text. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === "string" ? found : "";
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The texts of one member of each element. */
export const textsOf = (list: readonly unknown[], name: string): string[] =>
  list.flatMap((item) => some(textAt(item, name)));

/** None for "". */
export const some = (text: string): string[] => (text === "" ? [] : [text]);

export function numberAt(value: unknown, ...path: readonly string[]): number[] {
  const found = at(value, ...path);
  return typeof found === "number" && Number.isSafeInteger(found) ? [found] : [];
}
