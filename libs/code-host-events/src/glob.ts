/**
 * Returns whether a name matches a pattern: `*` is any text and `?` any character within one segment, `**` as a segment
 * any number of segments including none; everything else is literal. Takes at most (length of name) × (length of
 * pattern) steps.
 */
export function globMatches(pattern: string, name: string): boolean {
  return runs(pattern.split("/"), name.split("/"), (part) => part === "**", segmentMatches);
}

const segmentMatches = (pattern: string, segment: string): boolean =>
  pattern.includes("*") || pattern.includes("?")
    ? runs(
        Array.from(pattern.replace(/\*+/g, "*")),
        Array.from(segment),
        (part) => part === "*",
        (part, character) => part === "?" || part === character,
      )
    : pattern === segment;

/** The classic two-pointer algorithm: `isAny` parts match any number of items; only the latest one is backtracked. */
function runs<T>(
  parts: readonly string[],
  items: readonly T[],
  isAny: (part: string) => boolean,
  fits: (part: string, item: T) => boolean,
): boolean {
  let [part, item] = [0, 0];
  let back: { part: number; item: number } | undefined;
  while (item < items.length) {
    if (part < parts.length && isAny(parts[part]!)) {
      back = { part, item };
      part++;
    } else if (part < parts.length && fits(parts[part]!, items[item]!)) {
      part++;
      item++;
    } else if (back) {
      back.item++;
      [part, item] = [back.part + 1, back.item];
    } else return false;
  }
  return parts.slice(part).every(isAny);
}
