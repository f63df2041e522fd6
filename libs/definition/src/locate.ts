import { isMap, isScalar, LineCounter, parseDocument } from "yaml";
import { START, type Place } from "./diagnostics.ts";

/** Where the value of a top-level key of a YAML file starts; the file's start when there is none. For faults found outside the parser. */
export function locateKey(text: string, key: string): Place {
  const lines = new LineCounter();
  const { contents } = parseDocument(text, { lineCounter: lines, version: "1.2", uniqueKeys: false, prettyErrors: false });
  const pair = isMap(contents) ? contents.items.find((item) => isScalar(item.key) && item.key.value === key) : undefined;
  const offset = pair?.value?.range?.[0];
  if (offset === undefined) return START;
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}
