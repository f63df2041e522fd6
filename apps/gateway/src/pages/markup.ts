/** Text that is HTML already. Only this module creates it. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | Markup | undefined | false | readonly Part[];

/**
 * Returns HTML in which inserted values are escaped unless they are markup themselves. All content of our pages passes
 * through it.
 */
export const markup = (strings: TemplateStringsArray, ...parts: readonly Part[]): Markup =>
  new Markup(strings.map((text, index) => text + (index < parts.length ? render(parts[index]) : "")).join(""));

function render(part: Part): string {
  if (part === undefined || part === false) return "";
  if (part instanceof Markup) return part.text;
  return typeof part === "string" ? escapeHtml(part) : part.map(render).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (letter) => ENTITIES[letter]!);

/** Returns a value of an open JSON object as text, or "" if it is not a string. */
export const asText = (value: unknown): string => (typeof value === "string" ? value : "");
