import { expect, test } from "@jest/globals";
import { locateInThread, parseDefinition, parseDefinitionInThread } from "../src/index.ts";
import { filesOf, VALID } from "./marked-tree.ts";

const treeOf = (lines: number) => [
  ...filesOf(VALID),
  { path: "runners/box.yaml", content: `setupCommands:\n${"  - ls\n".repeat(lines)}colour: red\n` },
];

test.each([10, 40_000])("a tree with %d lines gives the same as in place", async (lines) => {
  expect(await parseDefinitionInThread(treeOf(lines))).toEqual(parseDefinition(treeOf(lines)));
});

test.each([10, 40_000])("the place of a value in a tree with %d lines is found", async (lines) => {
  const spots = [
    { path: "runners/box.yaml", keys: ["colour"] },
    { path: "runners/none.yaml", keys: ["colour"] },
  ];
  expect(await locateInThread(treeOf(lines), spots)).toEqual([
    { line: lines + 2, column: 9 },
    { line: 1, column: 1 },
  ]);
});

test("while a large tree is parsed, other work goes on", async () => {
  let isParsed = false;
  const parsing = parseDefinitionInThread(treeOf(40_000)).then(() => (isParsed = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(isParsed).toBe(false);
  expect(await parsing).toBe(true);
});
