import type { ReactNode } from "react";

/** Characters that are invisible or change the order of the text around them. */
const HIDDEN = /([\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|[\u{e0000}-\u{e007f}])/u;

/**
 * Shows a text of a run, a payload or a file name. React escapes it; bidirectional and invisible characters are shown as
 * their code points, so that the text cannot pretend to be another one.
 */
export function SafeText({ children }: { children: string }): ReactNode {
  if (!HIDDEN.test(children)) return children;
  return children.split(HIDDEN).map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      // parts never move, so their position identifies them
      <span key={index} className="hidden-character" title="Invisible or direction-changing character">
        {`U+${part.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}`}
      </span>
    ),
  );
}

/** Returns a text with hidden characters replaced, for places that take no elements, such as the title of the tab. */
export const visibleText = (text: string): string =>
  text
    .split(HIDDEN)
    .map((part, index) => (index % 2 === 0 ? part : "\u2423"))
    .join("");

/** Returns the URL if it is safe as a link target: http, https, or a path of this server. */
export function safeHref(url: string): string | undefined {
  if (!URL.canParse(url, location.origin)) return undefined;
  const { protocol } = new URL(url, location.origin);
  return protocol === "https:" || protocol === "http:" ? url : undefined;
}
