import { describe, expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { checkRule } from "./check-rule.ts";

const rule = (...checks: unknown[]) => ({ checks, pass: "yes", fail: "no" });
const check = (given: Record<string, unknown>) => checkRule(given, ["yes", "no"]);

describe("a rule", () => {
  test.each([
    ["a pattern in the diff", { kind: "regex", target: "diff", pattern: "^\\+.*TODO", flags: "m", negate: true }],
    [
      "a member of the final message",
      { kind: "json_path", target: "final_message", path: '$.checks[0]["exit code"]', equals: { a: [null] } },
    ],
    [
      "a member of a file that must not exist",
      { kind: "json_path", target: "file", file: "out/report.json", path: "$.errors", exists: false },
    ],
    ["a file with a text", { kind: "file", path: "README.md", contains: "Usage" }],
    ["a command", { kind: "command", command: "npm test", exit_code: 0, timeout_seconds: 120 }],
    ["a bound", { kind: "metric", metric: "cost_usd", max: 0.5 }],
    ["states", { kind: "state", in: ["SUCCEEDED", "BLOCKED"] }],
  ])("with %s is returned unchanged", (_what, given) => expect(check(rule(given))).toEqual(rule(given)));

  const state = { kind: "state", in: ["SUCCEEDED"] };
  test.each<[string, Record<string, unknown>]>([
    ["no checks", rule()],
    ["21 checks", rule(...Array<unknown>(21).fill(state))],
    ["an unknown member", { ...rule(state), weight: 1 }],
    ["a label that the scorer lacks", { ...rule(state), pass: "maybe" }],
    ["one label for both outcomes", { ...rule(state), fail: "yes" }],
    ["a check that is no object", rule("x")],
    ["an unknown kind", rule({ kind: "shell" })],
    ["a kind that is a member of every object", rule({ kind: "constructor" })],
    ["a misspelt member", rule({ kind: "command", command: "x", exitCode: 1 })],
    ["a back-reference", rule({ kind: "regex", target: "diff", pattern: "(a)\\1" })],
    ["a look-ahead", rule({ kind: "regex", target: "diff", pattern: "(?=a)" })],
    ["a look-behind", rule({ kind: "regex", target: "diff", pattern: "(?<!a)b" })],
    ["a pattern that does not compile", rule({ kind: "regex", target: "diff", pattern: "(" })],
    ["a pattern that is too long", rule({ kind: "regex", target: "diff", pattern: "a".repeat(1_001) })],
    ["an unknown flag", rule({ kind: "regex", target: "diff", pattern: "a", flags: "g" })],
    ["an unknown target", rule({ kind: "regex", target: "file", pattern: "a" })],
    ["a wildcard path", rule({ kind: "json_path", target: "final_message", path: "$..a" })],
    ["a file target without a file", rule({ kind: "json_path", target: "file", path: "$.a" })],
    ["a file beside another target", rule({ kind: "json_path", target: "final_message", file: "a", path: "$.a" })],
    ["equals and absence", rule({ kind: "json_path", target: "final_message", path: "$.a", equals: 1, exists: false })],
    ["a path outside the workspace", rule({ kind: "file", path: "../secrets" })],
    ["an absolute path", rule({ kind: "file", path: "/etc/passwd" })],
    ["a text in a file that must not exist", rule({ kind: "file", path: "a", exists: false, contains: "b" })],
    ["an exit code beyond a byte", rule({ kind: "command", command: "x", exit_code: 256 })],
    ["an exit code that is a text", rule({ kind: "command", command: "x", exit_code: "0" })],
    ["a timeout of more than ten minutes", rule({ kind: "command", command: "x", timeout_seconds: 601 })],
    ["a metric without bounds", rule({ kind: "metric", metric: "cost_usd" })],
    ["bounds that exclude each other", rule({ kind: "metric", metric: "cost_usd", min: 2, max: 1 })],
    ["an unknown state", rule({ kind: "state", in: ["DONE"] })],
    ["a state that is not an end", rule({ kind: "state", in: ["INPROGRESS"] })],
    ["no state", rule({ kind: "state", in: [] })],
  ])("with %s is refused", (_what, given) =>
    expect(() => check(given)).toThrow(domainError({ kind: "invalid_argument", reason: "scorer_invalid" })),
  );

  test("names the reason that the caller passes", () =>
    expect(() => checkRule(rule(), ["yes", "no"], "suite_invalid")).toThrow(domainError({ reason: "suite_invalid" })));
});
