import { expect, test } from "@jest/globals";
import { evaluateRule, type RuleEvidence } from "./evaluate-rule.ts";
import type { Check, Rule } from "./rule.ts";
import { readWorkspaceResults, workspaceScript, type CommandResult } from "./workspace-checks.ts";

const EVIDENCE: RuleEvidence = {
  state: "SUCCEEDED",
  costMicros: 1_500_000,
  totalTokens: 1200,
  runTimeMs: 61_000,
  finalMessage: '{"tests": {"failed": 0}}',
  conversation: "All 12 tests passed.",
  diff: "+++ b/README.md",
  workspace: new Map(),
};
const ruleOf = (...checks: Check[]): Rule => ({ checks, pass: "good", fail: "bad" });
const result = (exitCode: number | null, output = "", truncated = false): CommandResult => ({
  exitCode,
  output,
  truncated,
});

test.each<[Check, string]>([
  [{ kind: "regex", target: "conversation", pattern: "\\d+ tests passed" }, "good"],
  [{ kind: "regex", target: "diff", pattern: "SECRET", negate: true }, "good"],
  [{ kind: "regex", target: "final_message", pattern: "FAILED", flags: "i" }, "good"],
  [{ kind: "json_path", target: "final_message", path: "$.tests.failed", equals: 0 }, "good"],
  [{ kind: "json_path", target: "final_message", path: "$.tests.skipped" }, "bad"],
  [{ kind: "json_path", target: "final_message", path: "$.tests.skipped", exists: false }, "good"],
  [{ kind: "metric", metric: "cost_usd", max: 1.5 }, "good"],
  [{ kind: "metric", metric: "run_time_seconds", max: 60 }, "bad"],
  [{ kind: "metric", metric: "total_tokens", min: 1000, max: 1199 }, "bad"],
  [{ kind: "state", in: ["FAILED", "ERROR"] }, "bad"],
])("the check %j gives the label %s", (check, label) => {
  expect(evaluateRule(ruleOf(check), EVIDENCE)).toMatchObject({ kind: "decided", label });
});

test.each<[Check, CommandResult, string]>([
  [{ kind: "command", command: "npm test" }, result(0), "good"],
  [{ kind: "command", command: "npm test" }, result(null), "bad"],
  [{ kind: "command", command: "grep -q TODO -r .", exit_code: 1 }, result(1), "good"],
  [{ kind: "file", path: "README.md" }, result(0), "good"],
  [{ kind: "file", path: "README.md", exists: false }, result(66), "good"],
  [{ kind: "file", path: "README.md", contains: "usage" }, result(0, "no"), "bad"],
  [
    { kind: "json_path", target: "file", file: "package.json", path: "$.version", equals: "2.0.0" },
    result(0, '{"version":"2.0.0"}'),
    "good",
  ],
  [{ kind: "json_path", target: "file", file: "package.json", path: "$.version", equals: "2.0.0" }, result(66), "bad"],
])("the workspace check %j with the result %j gives the label %s", (check, found, label) => {
  expect(evaluateRule(ruleOf(check), { ...EVIDENCE, workspace: new Map([[0, found]]) })).toMatchObject({
    kind: "decided",
    label,
  });
});

test.each<[Check, CommandResult | undefined, string]>([
  [{ kind: "command", command: "true" }, undefined, "check_not_executed"],
  [{ kind: "file", path: "big", contains: "x" }, result(67), "evidence_too_large"],
])("a check that cannot be evaluated leaves the rule undecided: %j", (check, found, code) => {
  const evidence = { ...EVIDENCE, workspace: new Map(found ? [[0, found]] : []) };
  expect(evaluateRule(ruleOf(check), evidence)).toMatchObject({ kind: "undecided", code });
});

test("the reason lists each check in order and is the same each time", () => {
  const rule = ruleOf({ kind: "state", in: ["SUCCEEDED"] }, { kind: "metric", metric: "cost_usd", max: 1 });
  const verdict = evaluateRule(rule, EVIDENCE);
  expect(verdict).toEqual({
    kind: "decided",
    label: "bad",
    reason: "1. met: state is SUCCEEDED, expected SUCCEEDED\n2. not met: cost_usd is 1.5, expected at most 1",
  });
  expect(evaluateRule(structuredClone(rule), structuredClone(EVIDENCE))).toEqual(verdict);
});

test("the script of a rule quotes the texts of the rule, and the last result of each command counts", () => {
  const rule = ruleOf(
    { kind: "state", in: ["SUCCEEDED"] },
    { kind: "command", command: "echo '```'\necho \"a\"", timeout_seconds: 5 },
    { kind: "file", path: "it's" },
  );
  const script = workspaceScript(rule);
  const [, first, second, third, ...rest] = script.split("\n");
  expect(first).toBe(
    '- shell: {command: ": check 2\\n(\\necho \'```\'\\necho \\"a\\"\\n)", timeout_seconds: 5, allow_failure: true}',
  );
  expect(second).toContain("'./it'\\\\''s'");
  expect([third, ...rest]).toEqual(['- say: "The checks were executed."', "```"]);
  const action = (id: string, command: string, exitCode: number) => [
    { type: "action", id, name: "run_command", input: { command } },
    {
      type: "action_result",
      action_id: id,
      name: "run_command",
      output: { exit_code: exitCode, output: "o", truncated: false },
    },
  ];
  const content = [
    ...action("a", ": check 2\n(\ntrue\n)", 1),
    ...action("b", "echo : check 2", 9),
    ...action("c", ": check 2\n(\ntrue\n)", 0),
  ];
  expect(readWorkspaceResults(rule, JSON.stringify({ steps: [{ messages: [{ content }], steps: [] }] }))).toEqual(
    new Map([[1, result(0, "o")]]),
  );
});
