import { RE2JS, RE2JSException } from "re2js";

/** Maximum length of a pattern in characters. */
export const PATTERN_CHARACTERS_MAX = 1_000;

const FLAGS: Readonly<Record<string, number>> = { i: RE2JS.CASE_INSENSITIVE, m: RE2JS.MULTILINE, s: RE2JS.DOTALL };

/** Thrown if a pattern is not valid. The message states the reason. */
export class RegexError extends Error {}

export type Regex = { matches(text: string): boolean };

/**
 * Compiles a pattern in RE2 syntax (no back-references, no look-around). The time of a match is linear in the length of
 * the text for every pattern.
 *
 * Throws `RegexError`.
 */
export function compileRegex(pattern: string, flags = ""): Regex {
  if (pattern.length > PATTERN_CHARACTERS_MAX)
    throw new RegexError(`A pattern has at most ${PATTERN_CHARACTERS_MAX} characters (got ${pattern.length}).`);
  const bits = flags.split("").map((flag) => FLAGS[flag]);
  if (!bits.every((bit) => bit !== undefined)) throw new RegexError(`Flags must be among i, m and s (got "${flags}").`);
  try {
    const compiled = RE2JS.compile(
      pattern,
      bits.reduce((all, bit) => all | bit, 0),
    );
    return { matches: (text) => compiled.matcher(text).find() };
  } catch (error) {
    if (error instanceof RE2JSException) throw new RegexError(error.message);
    throw error;
  }
}
