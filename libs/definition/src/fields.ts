import { isAlias, isMap, isScalar, isSeq, type Node, type Scalar, type YAMLMap } from "yaml";
import { exactNumber } from "@millwright/payload-filter";
import { START, type DiagnosticCode, type Place } from "./diagnostics.ts";
import { hasAtMostCharacters } from "./rules.ts";
import type { YamlDocument } from "./yaml-document.ts";

/** A value with its position, for rules across files. */
export type Placed<T> = { readonly value: T; readonly at: Place };

type Entry = { readonly keyAt: Place; readonly node: Node | null; readonly at: Place };
type TextRule = { max?: number; pattern?: RegExp; hint?: string; oneOf?: readonly string[]; code?: DiagnosticCode };

/**
 * Reads one mapping: typed getters report a fault at its exact position and return undefined. Keys outside `known` are
 * reported when the mapping is opened.
 */
export class Fields {
  readonly #document: YamlDocument;
  readonly #entries = new Map<string, Entry>();
  /** Where a missing key is reported: the key of this mapping, the list item, or the file's start. */
  readonly at: Place;

  constructor(document: YamlDocument, map: YAMLMap | null, known: readonly string[] | "any", at: Place = START) {
    this.#document = document;
    this.at = at;
    for (const { key, value } of map?.items ?? []) {
      const keyAt = document.placeOf(key as Node) ?? at;
      const name = isScalar(key) ? key.value : undefined;
      if (isAlias(key)) continue; // reported as forbidden
      if (known !== "any" && (typeof name !== "string" || !known.includes(name))) {
        this.error(
          keyAt,
          "FF_UNKNOWN_FIELD",
          `Unknown field ${JSON.stringify(name ?? "(not text)")}; known are: ${known.join(", ")}.`,
        );
      } else if (typeof name !== "string") {
        this.error(keyAt, "FF_INVALID_TYPE", "A key must be text; quote it.");
      } else if (!isStorable(name)) {
        this.error(keyAt, "FF_INVALID_VALUE", "A key must not contain NUL or half a surrogate pair.");
      } else if (!this.#entries.has(name)) {
        const node = value as Node | null;
        this.#entries.set(name, { keyAt, node, at: document.placeOf(node) ?? keyAt });
      }
    }
  }

  error(at: Place, code: DiagnosticCode, message: string): void {
    this.#document.error(at, code, message);
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Treats null keys as absent, so that they inherit. */
  inherit(...keys: readonly string[]): void {
    for (const key of keys) if (this.isNull(key)) this.#entries.delete(key);
  }

  /** Returns whether a key is present with `null` or without a value. */
  isNull(key: string): boolean {
    const entry = this.#entries.get(key);
    return entry !== undefined && (entry.node === null || (isScalar(entry.node) && entry.node.value === null));
  }

  /** Returns whether a key is present with an empty text. */
  isBlank(key: string): boolean {
    const node = this.#entries.get(key)?.node;
    return isScalar(node) && node.value === "";
  }

  keys(): string[] {
    return [...this.#entries.keys()];
  }

  /** Returns where a key's value starts (the key itself without a value). */
  valueAt(key: string): Place {
    return this.#entries.get(key)?.at ?? this.at;
  }

  keyAt(key: string): Place {
    return this.#entries.get(key)?.keyAt ?? this.at;
  }

  /** Reports a required key that is absent; returns whether it is present. */
  require(key: string): boolean {
    if (!this.has(key)) this.error(this.at, "FF_MISSING_FIELD", `${key} is required.`);
    return this.has(key);
  }

  /** A text that is not blank. */
  text(key: string, rule: TextRule = {}): string | undefined {
    const entry = this.#entries.get(key);
    return entry && this.#text(entry.node, entry.at, key, rule);
  }

  oneOf<const T extends string>(key: string, values: readonly T[]): T | undefined {
    return this.text(key, { oneOf: values }) as T | undefined;
  }

  boolean(key: string): boolean | undefined {
    return this.#scalar(key, "true or false", (value) => (typeof value === "boolean" ? value : undefined));
  }

  /** A whole number within bounds. */
  integer(key: string, bounds: { min: number; max: number }): number | undefined {
    const value = this.#scalar(key, "a number", (found) => (typeof found === "number" ? found : undefined));
    if (value === undefined || (Number.isInteger(value) && value >= bounds.min && value <= bounds.max)) return value;
    this.error(
      this.valueAt(key),
      "FF_INVALID_VALUE",
      `${key} must be a whole number from ${bounds.min} to ${bounds.max}.`,
    );
    return undefined;
  }

  /** A number within bounds. */
  number(key: string, bounds: { min: number; max: number }): number | undefined {
    const value = this.#scalar(key, "a number", (found) => (typeof found === "number" ? found : undefined));
    if (value === undefined || (value >= bounds.min && value <= bounds.max)) return value;
    this.error(this.valueAt(key), "FF_INVALID_VALUE", `${key} must be a number from ${bounds.min} to ${bounds.max}.`);
    return undefined;
  }

  /** Returns whether a key has a list. */
  isList(key: string): boolean {
    return isSeq(this.#entries.get(key)?.node);
  }

  /**
   * Returns a value of any shape as JSON, and a function from dotted names to the position of a member (the value's
   * position if it is absent). Reports keys that JSON would spell differently.
   */
  json(key: string): { value: unknown; placeOf(path: string): Place } | undefined {
    const entry = this.#entries.get(key);
    if (!entry || isAlias(entry.node)) return undefined;
    this.#checkKeys(entry.node, entry.at);
    return {
      value: jsonOf(entry.node),
      placeOf: (path) => this.#document.placeOf(nodeAt(entry.node, path)) ?? entry.at,
    };
  }

  /** A list of texts without duplicates. */
  texts(key: string, rule: TextRule = {}): string[] | undefined {
    const found = this.lines(key, rule);
    return found && [...new Set(found)];
  }

  /** A list of whole numbers from 1, as texts without duplicates. */
  numbers(key: string): string[] | undefined {
    const found = this.#items(key)?.map(({ node, at }) => {
      const value = isScalar(node) ? String(node.value) : "";
      if (/^[1-9][0-9]{0,15}$/.test(value)) return value;
      if (!isAlias(node)) this.error(at, "FF_INVALID_TYPE", `Each entry of ${key} must be a whole number from 1.`);
      return undefined;
    });
    return found && [...new Set(found.filter((number) => number !== undefined))];
  }

  /** As `texts`, in order and with duplicates. */
  lines(key: string, rule: TextRule = {}): string[] | undefined {
    return this.#items(key)
      ?.map(({ node, at }) => this.#text(node, at, `each entry of ${key}`, rule))
      .filter((text) => text !== undefined);
  }

  /** An inner mapping. */
  fields(key: string, known: readonly string[] | "any", expected = "a mapping"): Fields | undefined {
    const entry = this.#entries.get(key);
    if (!entry || isAlias(entry.node)) return undefined;
    if (isMap(entry.node)) return new Fields(this.#document, entry.node, known, entry.keyAt);
    this.error(entry.at, "FF_INVALID_TYPE", `${key} must be ${expected}.`);
    return undefined;
  }

  /** A list of mappings. */
  list(key: string, known: readonly string[]): Fields[] | undefined {
    return this.#items(key)?.flatMap(({ node, at }) => {
      if (isMap(node)) return [new Fields(this.#document, node, known, at)];
      if (!isAlias(node)) this.error(at, "FF_INVALID_TYPE", `Each entry of ${key} must be a mapping.`);
      return [];
    });
  }

  #checkKeys(node: unknown, at: Place): void {
    if (isSeq(node)) for (const item of node.items) this.#checkKeys(item, at);
    if (!isMap(node)) return;
    for (const { key, value } of node.items) {
      if (!isAlias(key) && !(isScalar(key) && isSpelledAsRead(key)))
        this.error(this.#document.placeOf(key as Node) ?? at, "FF_INVALID_TYPE", "A key must be text; quote it.");
      this.#checkKeys(value, at);
    }
  }

  #items(key: string): { node: Node | null; at: Place }[] | undefined {
    const entry = this.#entries.get(key);
    if (!entry || isAlias(entry.node)) return undefined;
    if (isSeq(entry.node)) {
      return entry.node.items.map((item) => ({
        node: item as Node | null,
        at: this.#document.placeOf(item as Node | null) ?? entry.at,
      }));
    }
    this.error(entry.at, "FF_INVALID_TYPE", `${key} must be a list.`);
    return undefined;
  }

  #scalar<T>(key: string, expected: string, read: (value: unknown) => T | undefined): T | undefined {
    const entry = this.#entries.get(key);
    if (!entry || isAlias(entry.node)) return undefined;
    const value = isScalar(entry.node) ? read(entry.node.value) : undefined;
    if (value === undefined) this.error(entry.at, "FF_INVALID_TYPE", `${key} must be ${expected}.`);
    return value;
  }

  #text(node: Node | null, at: Place, what: string, rule: TextRule): string | undefined {
    if (isAlias(node)) return undefined;
    const value = isScalar(node) ? node.value : undefined;
    if (typeof value !== "string") {
      const hint = typeof value === "number" || typeof value === "boolean" ? "; quote it" : "";
      this.error(at, "FF_INVALID_TYPE", `${what} must be text${hint}.`);
      return undefined;
    }
    const fault = textFault(value, rule);
    if (fault === undefined) return value;
    this.error(at, rule.code ?? "FF_INVALID_VALUE", `${what} must ${fault}.`);
    return undefined;
  }
}

/** Returns whether JSON spells a key like the file. */
const isSpelledAsRead = ({ value, source }: Scalar): boolean =>
  typeof value === "string" || ((typeof value === "number" || typeof value === "boolean") && String(value) === source);

/** Returns a node as JSON; numbers that a float would change are exact. */
function jsonOf(node: unknown): unknown {
  if (isMap(node))
    return Object.fromEntries(
      node.items.map(({ key, value }) => [isScalar(key) ? String(key.value) : "", jsonOf(value)]),
    );
  if (isSeq(node)) return node.items.map(jsonOf);
  if (!isScalar(node)) return null;
  const { value, source } = node;
  return typeof value === "number" ? numberOf(source ?? String(value), value) : value;
}

/** YAML permits numbers that JSON does not: `+1`, `.5`, `5.`, `007`, `0x1f`. */
function numberOf(source: string, value: number): unknown {
  if (/^[-+]?0[xo]/.test(source))
    return Number.isSafeInteger(value) ? value : exactNumber(BigInt(source.replace(/^[-+]/, "")).toString());
  const text = source
    .replace(/^\+/, "")
    .replace(/^(-?)\./, "$10.")
    .replace(/\.(?=$|[eE])/, "")
    .replace(/^(-?)0+(?=\d)/, "$1");
  return /^-?\d+(\.\d+)?([eE][-+]?\d+)?$/.test(text) ? exactNumber(text) : value;
}

/** Names may contain dots, so the longest matching name is followed; list entries are found by their index. */
function nodeAt(node: Node | null, path: string): Node | null {
  if (path === "") return node;
  if (isSeq(node)) {
    const [index = "", ...rest] = path.split(".");
    return nodeAt((node.items[Number(index)] ?? node) as Node, rest.join("."));
  }
  if (!isMap(node)) return node;
  const fits = ({ key }: { key: unknown }): boolean =>
    isScalar(key) && typeof key.value === "string" && (path === key.value || path.startsWith(`${key.value}.`));
  const length = ({ key }: { key: unknown }): number => String((key as { value: unknown }).value).length;
  const [next] = node.items.filter(fits).toSorted((a, b) => length(b) - length(a));
  return next ? nodeAt((next.value ?? next.key) as Node, path.slice(length(next) + 1)) : node;
}

/** Escapes in quoted YAML can produce characters that a database column cannot store. */
export const isStorable = (text: string): boolean => !/[\0\p{Surrogate}]/u.test(text);

function textFault(value: string, { max, pattern, hint, oneOf }: TextRule): string | undefined {
  if (value.trim() === "") return "not be empty";
  if (!isStorable(value)) return "not contain NUL or half a surrogate pair";
  if (oneOf && !oneOf.includes(value)) return `be one of: ${oneOf.join(", ")}`;
  if (max !== undefined && !hasAtMostCharacters(value, max)) return `have at most ${max} characters`;
  if (pattern && !pattern.test(value)) return hint ?? "have another form";
  return undefined;
}
