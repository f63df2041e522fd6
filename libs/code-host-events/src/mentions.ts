const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const INLINE_CODE = /(`+)[^`]*\1/g;
const MENTION = /(?<![\w./`@-])@([a-z\d][\w.-]{0,254}(?:\/[a-z\d][\w.-]{0,254})*)/gi;

/**
 * Returns who is mentioned in a text (`@login`, `@org/team`), without duplicates, in lower case; mentions in code are
 * ignored.
 */
export function mentionsIn(text: string): string[] {
  const found = new Set<string>();
  let fence: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const mark = FENCE.exec(line)?.[1];
    if (fence === undefined && mark !== undefined) fence = mark;
    else if (fence !== undefined) {
      if (mark?.startsWith(fence)) fence = undefined;
    } else
      for (const [, name] of line.replace(INLINE_CODE, " ").matchAll(MENTION))
        found.add(name!.replace(/[._-]+$/, "").toLowerCase());
  }
  return [...found];
}

/** Returns who is mentioned now and was not mentioned before. */
export function newMentions(text: string, before: string): string[] {
  const known = new Set(mentionsIn(before));
  return mentionsIn(text).filter((name) => !known.has(name));
}
