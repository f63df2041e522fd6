import { textAt, type Fields } from "../model/event-fields.ts";
import type { ConversationEvent } from "../model/model-provider.ts";

const KIND = "harness_line";
/** Limits of the characters per line and of the lines per run. */
const CHARACTERS_MAX = 16_000;
const LINES_MAX = 200;

const moreOf = (harness: string): string =>
  `${harness} emitted more unknown lines than the ${LINES_MAX} that are stored; further ones are dropped.`;

export type UnknownLinesDeps = {
  readonly harness: string;
  readonly mask: (text: string) => string;
  readonly record: (kind: string, payload: Fields) => void;
};

/**
 * Stores lines of an agent program in an unknown format, such as those of a later version. They are unchanged except
 * that they are masked and limited.
 */
export class UnknownLines {
  readonly #deps: UnknownLinesDeps;
  #count: number;

  /** @param events the run's events so far */
  constructor(events: readonly ConversationEvent[], deps: UnknownLinesDeps) {
    this.#deps = deps;
    const more = moreOf(deps.harness);
    const storedCount = events.filter(({ kind }) => kind === KIND).length;
    const isReported = events.some(({ kind, payload }) => kind === "warning" && textAt(payload, "text") === more);
    this.#count = storedCount + (isReported ? 1 : 0);
  }

  add(line: string): void {
    const { harness, mask, record } = this.#deps;
    if (line.trim() === "" || (this.#count += 1) > LINES_MAX + 1) return;
    if (this.#count > LINES_MAX) return record("warning", { text: moreOf(harness) });
    const text = mask(line);
    record(KIND, {
      harness,
      line: text.slice(0, CHARACTERS_MAX),
      truncated: text.length > CHARACTERS_MAX || undefined,
    });
  }
}

/** Returns the unknown lines that a run's events contain, oldest first. */
export const unknownLinesIn = (events: readonly ConversationEvent[]): string[] =>
  events.filter(({ kind }) => kind === KIND).map(({ payload }) => textAt(payload, "line"));
