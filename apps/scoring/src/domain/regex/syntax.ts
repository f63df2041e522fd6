import { readClass, readEscape, type CharacterTest } from "./character-class.ts";

/** A pattern is not of the supported subset; the message says where and why. */
export class RegexError extends Error {
  override readonly name = "RegexError";
}

export type Assertion = "line_start" | "line_end" | "text_start" | "text_end" | "word_boundary" | "no_word_boundary";

export type Node =
  | { readonly kind: "empty" }
  | { readonly kind: "character"; readonly test: CharacterTest }
  | { readonly kind: "assertion"; readonly assertion: Assertion }
  | { readonly kind: "sequence" | "choice"; readonly nodes: readonly Node[] }
  | { readonly kind: "repeat"; readonly node: Node; readonly min: number; readonly max: number };

export type Flags = { readonly ignoreCase: boolean; readonly multiline: boolean; readonly dotAll: boolean };

export const PATTERN_CHARACTERS_MAX = 1_000;
const REPEAT_MAX = 1_000;
const DEPTH_MAX = 50;
const QUANTIFIER = /^(?:[*+?]|\{(\d{1,4})(?:(,)(\d{1,4})?)?\})\??/;
const GROUP = /^\((?:\?:|\?P?<[A-Za-z_]\w*>|(?!\?))/;

/** Parses a pattern of RE2's syntax without back-references and look-around. Throws `RegexError`. */
export function parsePattern(pattern: string, flags: Flags): Node {
  if (pattern.length > PATTERN_CHARACTERS_MAX) {
    throw new RegexError(`The pattern must have at most ${PATTERN_CHARACTERS_MAX} characters (got ${pattern.length}).`);
  }
  const parser = new Parser(pattern, flags);
  const node = parser.choice(0);
  parser.requireEnd();
  return node;
}

class Parser {
  readonly #pattern: string;
  readonly #flags: Flags;
  #at = 0;

  constructor(pattern: string, flags: Flags) {
    this.#pattern = pattern;
    this.#flags = flags;
  }

  choice(depth: number): Node {
    if (depth > DEPTH_MAX) throw this.#error(`groups are nested more than ${DEPTH_MAX} deep`);
    const nodes = [this.#sequence(depth)];
    while (this.#take("|")) nodes.push(this.#sequence(depth));
    return nodes.length === 1 ? nodes[0]! : { kind: "choice", nodes };
  }

  requireEnd(): void {
    if (this.#at < this.#pattern.length) throw this.#error("unmatched )");
  }

  #sequence(depth: number): Node {
    const nodes: Node[] = [];
    while (this.#at < this.#pattern.length && this.#peek() !== "|" && this.#peek() !== ")") nodes.push(this.#repeated(this.#atom(depth)));
    return nodes.length === 1 ? nodes[0]! : { kind: "sequence", nodes };
  }

  #repeated(node: Node): Node {
    const found = QUANTIFIER.exec(this.#pattern.slice(this.#at));
    if (!found) return node;
    this.#at += found[0].length;
    if (QUANTIFIER.test(this.#pattern.slice(this.#at))) throw this.#error("a quantifier follows a quantifier");
    const [text, from = "0", comma, to] = found;
    if (text.startsWith("*")) return { kind: "repeat", node, min: 0, max: Infinity };
    if (text.startsWith("+")) return { kind: "repeat", node, min: 1, max: Infinity };
    if (text.startsWith("?")) return { kind: "repeat", node, min: 0, max: 1 };
    const min = Number(from);
    const max = comma === undefined ? min : to === undefined ? Infinity : Number(to);
    if (min > REPEAT_MAX || (max !== Infinity && max > REPEAT_MAX)) throw this.#error(`a repeat count is above ${REPEAT_MAX}`);
    if (max < min) throw this.#error("a repeat's minimum is above its maximum");
    return { kind: "repeat", node, min, max };
  }

  #atom(depth: number): Node {
    const { ignoreCase, multiline, dotAll } = this.#flags;
    const character = this.#peek();
    if (character === "(") return this.#group(depth);
    if (character === "[") return this.#counted(readClass(this.#pattern, this.#at, ignoreCase));
    if (character === "\\") return this.#escape();
    if ("*+?".includes(character)) throw this.#error(`nothing to repeat before ${character}`);
    this.#at += character.length;
    if (character === "^") return { kind: "assertion", assertion: multiline ? "line_start" : "text_start" };
    if (character === "$") return { kind: "assertion", assertion: multiline ? "line_end" : "text_end" };
    if (character === ".") return { kind: "character", test: (code) => dotAll || code !== 10 };
    this.#at -= character.length;
    return this.#counted(readEscape(this.#pattern, this.#at, ignoreCase));
  }

  #group(depth: number): Node {
    const opening = GROUP.exec(this.#pattern.slice(this.#at));
    if (!opening) throw this.#error("look-around and inline flags are not supported");
    this.#at += opening[0].length;
    const node = this.choice(depth + 1);
    if (!this.#take(")")) throw this.#error("missing )");
    return node;
  }

  #escape(): Node {
    const next = this.#pattern[this.#at + 1];
    const assertion = ASSERTIONS[next ?? ""];
    if (assertion !== undefined) {
      this.#at += 2;
      return { kind: "assertion", assertion };
    }
    return this.#counted(readEscape(this.#pattern, this.#at, this.#flags.ignoreCase));
  }

  #counted(read: { readonly test: CharacterTest; readonly end: number } | { readonly error: string }): Node {
    if ("error" in read) throw this.#error(read.error);
    this.#at = read.end;
    return { kind: "character", test: read.test };
  }

  #peek(): string {
    return String.fromCodePoint(this.#pattern.codePointAt(this.#at)!);
  }

  #take(character: string): boolean {
    if (this.#pattern[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #error(why: string): RegexError {
    return new RegexError(`The pattern is invalid at character ${this.#at + 1}: ${why}.`);
  }
}

const ASSERTIONS: { readonly [letter: string]: Assertion } = { b: "word_boundary", B: "no_word_boundary", A: "text_start", z: "text_end" };
