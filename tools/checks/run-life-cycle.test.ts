import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { readJoinedCalls } from "./joined-calls.ts";

const ROOT = new URL("../..", import.meta.url).pathname;
const page = readFileSync(join(ROOT, "docs/run-life-cycle.md"), "utf8");
const notes = page.split("\n").filter((line) => line.startsWith("[^"));
/** The sentences of the page, without headings, diagram, table and notes. */
const prose = page
  .replaceAll(/```[^]*?```/g, "")
  .split("\n")
  .filter((line) => line !== "" && !/^(#|\||\[\^)/.test(line));

/** Returns the names and files of the tests in a note. */
const namedIn = (note: string): { name: string; path: string }[] =>
  [...note.matchAll(/"([^"]+)" in \[[^\]]+\]\(\.\.\/([^)]+)\)/g)].map(([, name, path]) => ({
    name: name!,
    path: path!,
  }));

/** Returns whether a call in the file declares a test with the name. */
function isTest({ name, path }: { name: string; path: string }): boolean {
  if (!path.endsWith(".test.ts") || !existsSync(join(ROOT, path))) return false;
  const lines = readJoinedCalls(join(ROOT, path)).split("\n");
  return lines.some((line) => line.includes(name) && /\b(test|needs)\b|\)\("/.test(line));
}

test("every sentence of the page on the life of a run is backed by tests that exist", () => {
  // one sentence per line, with its note
  expect(prose.filter((line) => !/[.!?](\[\^[\w-]+\])+$/.test(line) || /[.!?]\s/.test(line))).toEqual([]);
  const used = new Set(prose.flatMap((line) => [...line.matchAll(/\[\^([\w-]+)\]/g)].map(([, id]) => id)));
  expect(new Set(notes.map((note) => /^\[\^([\w-]+)\]: /.exec(note)?.[1]))).toEqual(used);
  expect(notes.filter((note) => namedIn(note).length === 0)).toEqual([]);
  expect(notes.flatMap(namedIn).filter((one) => !isTest(one))).toEqual([]);
});
