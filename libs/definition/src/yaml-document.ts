import { Composer, isMap, isScalar, isSeq, LineCounter, Parser, type Document, type Node, type YAMLMap } from "yaml";
import { START, type DiagnosticCode, type Place, type Problems } from "./diagnostics.ts";

/** A YAML document during validation: the positions of its nodes, and the collector of its problems. */
export class YamlDocument {
  readonly path: string;
  readonly #problems: Problems;
  readonly #lines: LineCounter;

  constructor(path: string, problems: Problems, lines: LineCounter) {
    this.path = path;
    this.#problems = problems;
    this.#lines = lines;
  }

  error(place: Place, code: DiagnosticCode, message: string): void {
    this.#problems.error(this.path, place, code, message);
  }

  /** Returns where a node's text starts; undefined for a node without text, such as the value of `key:`. */
  placeOf(node: Node | null | undefined): Place | undefined {
    const range = node?.range;
    return range && range[1] > range[0] ? this.placeAt(range[0]) : undefined;
  }

  placeAt(offset: number): Place {
    const { line, col } = this.#lines.linePos(offset);
    return line === 0 ? START : { line, column: col };
  }
}

/**
 * Parses YAML 1.2 with the core schema, so `on`, `yes` and `off` are text. Reports anchors, aliases, tags, directives,
 * further documents and duplicate keys. Returns the top-level mapping (null for an empty document), or undefined if the
 * text cannot be parsed reliably.
 */
export function parseYaml(
  path: string,
  text: string,
  problems: Problems,
): { document: YamlDocument; map: YAMLMap | null } | undefined {
  const lines = new LineCounter();
  const document = new YamlDocument(path, problems, lines);
  let parsed: Document.Parsed | undefined;
  let further: Document.Parsed | undefined;
  try {
    const tokens = [...new Parser(lines.addNewLine).parse(text.replace(/^\uFEFF/, ""))];
    for (const token of tokens) reportForbidden(token, document);
    // Duplicate keys are found below: the library's own check takes quadratic time.
    [parsed, further] = new Composer({ version: "1.2", schema: "core", uniqueKeys: false }).compose(
      tokens,
      true,
      text.length,
    );
    reportDuplicateKeys(parsed?.contents, document);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error; // the stack is the only limit on nesting
    return tooDeep(document);
  }
  if (parsed?.errors.some(({ code }) => code === "RESOURCE_EXHAUSTION")) return tooDeep(document);
  if (further)
    document.error(document.placeAt(further.range[0]), "FF_PARSE_ERROR", "A file must contain one document.");
  const faults = (parsed?.errors ?? []).filter(({ code }) => !REPORTED_AS_FORBIDDEN.has(code));
  for (const fault of faults) document.error(document.placeAt(fault.pos[0]), "FF_PARSE_ERROR", sentence(fault.message));
  if (!parsed || further || faults.length > 0) return undefined;
  const { contents } = parsed;
  if (isMap(contents)) return { document, map: contents };
  if (contents === null || (isScalar(contents) && contents.value === null)) return { document, map: null };
  document.error(
    document.placeOf(contents) ?? START,
    "FF_INVALID_TYPE",
    "The document must be a mapping of keys to values.",
  );
  return undefined;
}

function tooDeep(document: YamlDocument): undefined {
  document.error(START, "FF_PARSE_ERROR", "The document is nested too deeply.");
}

const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

const REPORTED_AS_FORBIDDEN: ReadonlySet<string> = new Set(["TAG_RESOLVE_FAILED", "BAD_ALIAS", "BAD_DIRECTIVE"]);

const FORBIDDEN: Readonly<Record<string, string>> = {
  anchor: "Anchors are not allowed.",
  alias: "Aliases are not allowed.",
  tag: "Tags are not allowed.",
  directive: "Directives are not allowed.",
};

/** Walks the concrete syntax tree, where every anchor, alias and tag has its own position. */
function reportForbidden(token: unknown, document: YamlDocument): void {
  if (Array.isArray(token)) {
    for (const item of token) reportForbidden(item, document);
  } else if (token !== null && typeof token === "object") {
    const { type, offset } = token as { type?: string; offset?: number };
    const message = type === undefined ? undefined : FORBIDDEN[type];
    if (message !== undefined && offset !== undefined)
      document.error(document.placeAt(offset), "FF_FORBIDDEN_YAML", message);
    for (const inner of Object.values(token)) if (typeof inner === "object") reportForbidden(inner, document);
  }
}

function reportDuplicateKeys(node: unknown, document: YamlDocument): void {
  if (isSeq(node)) for (const item of node.items) reportDuplicateKeys(item, document);
  if (!isMap(node)) return;
  const seen = new Set<unknown>();
  for (const { key, value } of node.items) {
    if (isScalar(key)) {
      if (seen.has(key.value))
        document.error(
          document.placeOf(key) ?? START,
          "FF_DUPLICATE_KEY",
          `The key ${JSON.stringify(key.value)} is already set.`,
        );
      seen.add(key.value);
    }
    reportDuplicateKeys(value, document);
  }
}
