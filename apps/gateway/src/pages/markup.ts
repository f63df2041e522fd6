/** Text that is already HTML; made only here. */
export class Markup {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Part = string | Markup | undefined | false | readonly Part[];

/** HTML whose inserted values are escaped unless they are markup themselves. Everything on our pages comes through here. */
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

/** A value of an open JSON object as text; "" for what is none. */
export const asText = (value: unknown): string => (typeof value === "string" ? value : "");

/** The href of a link that an agent may have chosen: only web addresses; anything else leads nowhere. */
export const safeHref = (url: unknown): string => (typeof url === "string" && /^https?:\/\//i.test(url) ? url : "#");
