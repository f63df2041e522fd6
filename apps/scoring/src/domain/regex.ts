import { RE2JS, RE2JSException } from "re2js";

/** Longer patterns are refused. */
export const PATTERN_CHARACTERS_MAX = 1_000;

const FLAGS: Readonly<Record<string, number>> = { i: RE2JS.CASE_INSENSITIVE, m: RE2JS.MULTILINE, s: RE2JS.DOTALL };

/** A pattern that is not valid; the message states why. */
export class RegexError extends Error {}

export type Regex = { matches(text: string): boolean };

/**
 * Compiles a pattern in RE2 syntax (no back-references, no look-around): the time of a match grows linearly with the text, whatever the pattern.
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
