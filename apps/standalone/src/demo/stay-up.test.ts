import { expect, test } from "@jest/globals";
import { demoEnd } from "./stay-up.ts";

const terminal = { exit: false, keep: false, isTerminal: true, env: {} };

test.each([
  ["on a terminal", {}, "key"],
  ["without a terminal", { isTerminal: false }, "exit"],
  ["on a terminal of a CI job", { env: { CI: "true" } }, "exit"],
  ["on a terminal with --exit", { exit: true }, "exit"],
  ["with --keep, without a terminal", { keep: true, isTerminal: false }, "signal"],
  ["with --keep in a CI job", { keep: true, env: { CI: "true" } }, "signal"],
])("%s %j: the demo ends by %s", (_where, options, end) => {
  expect(demoEnd({ ...terminal, ...options })).toBe(end);
});
