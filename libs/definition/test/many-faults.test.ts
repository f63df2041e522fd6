import { expect, test } from "@jest/globals";
import * as fc from "fast-check";
import { parseDefinition } from "../src/index.ts";
import { errorsOf, unmark, VALID } from "./marked-tree.ts";

/** One fault of an agent's frontmatter, and one of a runner, to distribute over a tree. */
const AGENT_FAULTS = [
  "§FF_UNKNOWN_FIELD§colour: red",
  "agentType: §FF_INVALID_VALUE§BOSS",
  "description: §FF_INVALID_TYPE§[a]",
  "runner: §FF_INVALID_REFERENCE§nowhere",
  "secrets: §FF_INVALID_TYPE§one",
  "workerHost: §FF_FORBIDDEN_YAML§&here box",
  "model: a\n§FF_DUPLICATE_KEY§model: b",
  "model: a\n§FF_CONFLICTING_FIELDS§harness: { type: codex }",
  "harness:\n  type: §FF_INVALID_VALUE§robot",
  "mcpServers:\n  §FF_MISSING_FIELD§docs: {}",
];
const RUNNER_FAULTS = [
  "setupCommands:\n  - ls\n  - §FF_INVALID_TYPE§{}\nplatform: { linux: { dockerImage: x } }",
  "platform:\n  os: §FF_INVALID_VALUE§bsd\n  linux: { dockerImage: x }",
  "platform: { linux: { dockerImage: x, §FF_UNKNOWN_FIELD§tag: y } }",
  "instanceShape: { vcpus: §FF_INVALID_VALUE§0, memoryGb: 4 }\nplatform: { linux: { dockerImage: x } }",
];

const padding = fc.array(fc.constantFrom("", "# note", "#  § here".replace("§", "$"), "   "), { maxLength: 4 });
const fault = (faults: readonly string[]) => fc.tuple(fc.constantFrom(...faults), padding);
const trees = fc
  .tuple(
    fc.array(fault(AGENT_FAULTS), { minLength: 150, maxLength: 150 }),
    fc.array(fault(RUNNER_FAULTS), { minLength: 50, maxLength: 50 }),
  )
  .map(([agents, runners]) => ({
    ...VALID,
    ...Object.fromEntries(
      agents.map(([text, pad], n) => [`agents/hand-${n}/agent.md`, ["---", ...pad, text, "---", "Work."].join("\n")]),
    ),
    ...Object.fromEntries(runners.map(([text, pad], n) => [`runners/box-${n}.yaml`, [...pad, text, ""].join("\n")])),
  }));

test("a tree with 200 faults reports the 200 exact positions", () => {
  fc.assert(
    fc.property(trees, (marked) => {
      const { files, expected } = unmark(marked);
      expect(expected).toHaveLength(200);
      expect(errorsOf(files)).toEqual(expected);
    }),
    { numRuns: 30 },
  );
});

test("the result depends on the files, not on their order", () => {
  const shuffled = trees.chain((marked) => {
    const { files } = unmark(marked);
    return fc.tuple(
      fc.constant(files),
      fc.shuffledSubarray([...files, ...files.slice(0, 2)], { minLength: files.length + 2 }),
    );
  });
  fc.assert(
    fc.property(shuffled, ([files, other]) => {
      expect(parseDefinition(other)).toEqual(parseDefinition([...files, ...files.slice(0, 2)]));
    }),
    { numRuns: 30 },
  );
});
