import { checkJson, type CheckResult } from "./check-json.ts";
import { compileRegex } from "./regex.ts";
import type { Check, Rule } from "./rule.ts";
import { evaluateWorkspaceCheck, isWorkspaceCheck, type CommandResult } from "./workspace-checks.ts";

/** The evidence of a run that rules evaluate. */
export type RuleEvidence = {
  readonly state: string;
  readonly costMicros: number;
  readonly totalTokens: number;
  readonly runTimeMs: number;
  readonly finalMessage: string;
  readonly conversation: string;
  readonly diff: string;
  /** Results of the commands on the run's workspace, by the index of the check. */
  readonly workspace: ReadonlyMap<number, CommandResult>;
};

export type RuleVerdict =
  | { readonly kind: "decided"; readonly label: string; readonly reason: string }
  | { readonly kind: "undecided"; readonly code: string; readonly message: string };

/** Maximum length of a text that is matched, in characters. */
const TEXT_CHARACTERS_MAX = 4 * 1024 * 1024;

/** Returns whether any check reads the run's workspace. */
export const needsWorkspace = (rule: Rule): boolean => rule.checks.some(isWorkspaceCheck);

/** Returns whether any check reads texts of the run: its conversation, final message or diff. */
export const needsTexts = (rule: Rule): boolean =>
  rule.checks.some(
    (check) => check.kind === "regex" || (check.kind === "json_path" && check.target === "final_message"),
  );

/**
 * Evaluates every check and returns the rule's label, with a reason that lists the result of each check. The verdict is
 * deterministic, byte for byte. If a check cannot be evaluated, the rule is undecided, which is never a score.
 */
export function evaluateRule(rule: Rule, evidence: RuleEvidence): RuleVerdict {
  const results = rule.checks.map((check, index) => evaluateCheck(check, index, evidence));
  const lines: string[] = [];
  let isPassed = true;
  for (const [index, result] of results.entries()) {
    if ("code" in result)
      return { kind: "undecided", code: result.code, message: `Check ${index + 1}: ${result.message}` };
    isPassed &&= result.isMet;
    lines.push(`${index + 1}. ${result.isMet ? "met" : "not met"}: ${result.text}`);
  }
  return { kind: "decided", label: isPassed ? rule.pass : rule.fail, reason: lines.join("\n") };
}

function evaluateCheck(check: Check, index: number, evidence: RuleEvidence): CheckResult {
  if (isWorkspaceCheck(check)) return evaluateWorkspaceCheck(check, evidence.workspace.get(index));
  switch (check.kind) {
    case "regex":
      return matchText(check, evidence);
    case "json_path":
      return readMessage(check, evidence.finalMessage);
    case "metric":
      return compareMetric(check, evidence);
    default:
      return {
        isMet: check.in.includes(evidence.state),
        text: `state is ${evidence.state}, expected ${check.in.join(" or ")}`,
      };
  }
}

function matchText(
  { target, pattern, flags, negate = false }: Check & { kind: "regex" },
  evidence: RuleEvidence,
): CheckResult {
  const text = { final_message: evidence.finalMessage, conversation: evidence.conversation, diff: evidence.diff }[
    target
  ];
  if (text.length > TEXT_CHARACTERS_MAX) {
    return {
      code: "evidence_too_large",
      message: `the ${target} must have at most ${TEXT_CHARACTERS_MAX} characters (got ${text.length}).`,
    };
  }
  const isMatch = compileRegex(pattern, flags).matches(text);
  return {
    isMet: isMatch !== negate,
    text: `/${pattern}/${flags ?? ""} ${isMatch ? "matches" : "does not match"} the ${target}${negate ? ", expected no match" : ""}`,
  };
}

function readMessage(check: Check & { kind: "json_path" }, message: string): CheckResult {
  return checkJson(check, unfenced(message), "the final message");
}

function compareMetric({ metric, min, max }: Check & { kind: "metric" }, evidence: RuleEvidence): CheckResult {
  const value = {
    cost_usd: evidence.costMicros / 1e6,
    total_tokens: evidence.totalTokens,
    run_time_seconds: evidence.runTimeMs / 1000,
  }[metric];
  const bounds = [...(min === undefined ? [] : [`at least ${min}`]), ...(max === undefined ? [] : [`at most ${max}`])];
  return {
    isMet: (min === undefined || value >= min) && (max === undefined || value <= max),
    text: `${metric} is ${value}, expected ${bounds.join(" and ")}`,
  };
}

/** Removes the fenced block into which models put JSON. */
const unfenced = (text: string): string => /^```(?:json)?\n([\s\S]*)\n```$/.exec(text.trim())?.[1] ?? text;
