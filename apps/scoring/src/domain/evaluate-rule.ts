import { checkJson, type CheckResult } from "./check-json.ts";
import { compileRegex } from "./regex.ts";
import type { Check, Rule } from "./rule.ts";
import { evaluateWorkspaceCheck, isWorkspaceCheck, type CommandResult } from "./workspace-checks.ts";

/** What a rule reads of a run. */
export type RuleEvidence = {
  readonly state: string;
  readonly costMicros: number;
  readonly totalTokens: number;
  readonly runTimeMs: number;
  readonly finalMessage: string;
  readonly conversation: string;
  readonly diff: string;
  /** By the position of the check: what its command returned on the run's workspace. */
  readonly workspace: ReadonlyMap<number, CommandResult>;
};

export type RuleVerdict =
  | { readonly kind: "decided"; readonly label: string; readonly reason: string }
  | { readonly kind: "undecided"; readonly code: string; readonly message: string };

/** Texts above this are not matched. */
const TEXT_CHARACTERS_MAX = 4 * 1024 * 1024;

/** Whether some check reads the run's workspace. */
export const needsWorkspace = (rule: Rule): boolean => rule.checks.some(isWorkspaceCheck);

/** Whether some check reads what the run wrote: its conversation, final message or diff. */
export const needsTexts = (rule: Rule): boolean =>
  rule.checks.some(
    (check) => check.kind === "regex" || (check.kind === "json_path" && check.target === "final_message"),
  );

/**
 * Evaluates every check and gives the rule's label; the reason lists what each check found. The same rule and evidence always give the same
 * verdict, byte for byte. A check that cannot be evaluated leaves the rule undecided: that is never a score.
 */
export function evaluateRule(rule: Rule, evidence: RuleEvidence): RuleVerdict {
  const results = rule.checks.map((check, index) => evaluateCheck(check, index, evidence));
  const lines: string[] = [];
  let allHold = true;
  for (const [index, result] of results.entries()) {
    if ("code" in result)
      return { kind: "undecided", code: result.code, message: `Check ${index + 1}: ${result.message}` };
    allHold &&= result.holds;
    lines.push(`${index + 1}. ${result.holds ? "holds" : "does not hold"}: ${result.text}`);
  }
  return { kind: "decided", label: allHold ? rule.pass : rule.fail, reason: lines.join("\n") };
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
        holds: check.in.includes(evidence.state),
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
    holds: isMatch !== negate,
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
    holds: (min === undefined || value >= min) && (max === undefined || value <= max),
    text: `${metric} is ${value}, expected ${bounds.join(" and ")}`,
  };
}

/** Models put JSON into a fenced block. */
const unfenced = (text: string): string => /^```(?:json)?\n([\s\S]*)\n```$/.exec(text.trim())?.[1] ?? text;
