import { isMap, isScalar, isSeq, type Node } from "yaml";
import { Problems, START, type Place } from "./diagnostics.ts";
import { parseMarkdown } from "./markdown.ts";
import { textOf, type TreeFile } from "./tree.ts";
import { parseYaml } from "./yaml-document.ts";

/**
 * A value in a YAML file, or in a Markdown file's frontmatter. Each key descends one level: a field by its name, a list
 * entry by its text or index.
 */
export type Spot = { readonly path: string; readonly keys: readonly string[] };

/** Returns where these values start, for faults found outside the parser; the file's start for a missing value. */
export function locate(files: readonly TreeFile[], spots: readonly Spot[]): Place[] {
  const texts = new Map(files.map(({ path, content }) => [path, content]));
  const read = new Map(
    [...new Set(spots.map(({ path }) => path))].map((path) => [path, parse(path, textOf(texts.get(path) ?? "") ?? "")]),
  );
  return spots.map(({ path, keys }) => {
    const { document, map } = read.get(path) ?? {};
    return (keys.length > 0 && document?.placeOf(keys.reduce<unknown>(within, map) as Node | undefined)) || START;
  });
}

const parse = (path: string, text: string) =>
  (path.endsWith(".md") ? parseMarkdown : parseYaml)(path, text, new Problems());

function within(node: unknown, key: string): unknown {
  if (isMap(node)) return node.get(key, true);
  return isSeq(node)
    ? (node.items.find((item) => isScalar(item) && item.value === key) ?? node.items[Number(key)])
    : undefined;
}
