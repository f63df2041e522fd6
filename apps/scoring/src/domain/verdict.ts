import { REASON_BYTES_MAX, type Attempt, type Verdict } from "./attempt.ts";
import { evaluateRule, type RuleEvidence } from "./evaluate-rule.ts";
import type { Rule } from "./rule.ts";

/** Truncates a reason to the maximum size of stored reasons, at a character boundary. */
export function storedReason(reason: string): string {
  const bytes = new TextEncoder().encode(reason);
  return bytes.length <= REASON_BYTES_MAX
    ? reason
    : new TextDecoder().decode(bytes.subarray(0, REASON_BYTES_MAX), { stream: true });
}

export const failed = (code: string, message: string): Verdict => ({
  kind: "failed",
  code,
  message: storedReason(message),
});

/** Returns the verdict for a label that was captured at dispatch, or undefined if the label was not. */
export function scoredAs(attempt: Attempt, classification: string, reason: string | undefined): Verdict | undefined {
  const label = attempt.config.labels.find(({ value }) => value === classification);
  return label && { kind: "scored", label, reason: reason ? storedReason(reason) : undefined };
}

/** Returns the verdict of a rule about a run. A check that cannot be evaluated is a failure, never a score. */
export function ruleVerdict(attempt: Attempt, rule: Rule, evidence: RuleEvidence): Verdict {
  const verdict = evaluateRule(rule, evidence);
  if (verdict.kind === "undecided") return failed(verdict.code, verdict.message);
  return (
    scoredAs(attempt, verdict.label, verdict.reason) ??
    failed("rule_invalid", `The rule gives the label "${verdict.label}", which the scorer does not have.`)
  );
}
