import { expect, test } from "@jest/globals";
import { locateInThread, parseDefinition, parseDefinitionInThread } from "../src/index.ts";
import { filesOf, VALID } from "./marked-tree.ts";

const treeOf = (lines: number) => [
  ...filesOf(VALID),
  { path: "runners/box.yaml", content: `setupCommands:\n${"  - ls\n".repeat(lines)}colour: red\n` },
];

test.each([10, 40_000])("a tree with %d lines has the same result as on the caller's thread", async (lines) => {
  expect(await parseDefinitionInThread(treeOf(lines))).toEqual(parseDefinition(treeOf(lines)));
});

test.each([10, 40_000])("finds the position of a value in a tree with %d lines", async (lines) => {
  const spots = [
    { path: "runners/box.yaml", keys: ["colour"] },
    { path: "runners/none.yaml", keys: ["colour"] },
  ];
  expect(await locateInThread(treeOf(lines), spots)).toEqual([
    { line: lines + 2, column: 9 },
    { line: 1, column: 1 },
  ]);
});

test("other work continues while a large tree is parsed", async () => {
  let isParsed = false;
  const parsing = parseDefinitionInThread(treeOf(40_000)).then(() => (isParsed = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isParsed).toBe(false);
  expect(await parsing).toBe(true);
});
