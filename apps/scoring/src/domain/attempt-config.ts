import type { AttemptConfig } from "./attempt.ts";
import type { Rule } from "./rule.ts";
import { RULE_MODEL, type Scorer } from "./scorer.ts";

/** What a benchmark task has in place of the scorer's own rubric. */
export type ConfigOverrides = {
  readonly rubric?: string | undefined;
  /** A rule judges; no model is asked. */
  readonly rule?: Rule | undefined;
};

/** What a judge takes from a scorer, or from its record in a manifest. */
export type JudgeSource = Pick<
  Scorer,
  "uid" | "version" | "labels" | "threshold" | "scoringPrompt" | "modelId" | "rule" | "agentConfig"
>;

/** Returns what the judge of an attempt works with: the scorer as it is given. */
export function captureConfig(
  scorer: JudgeSource,
  { rubric, rule = scorer.rule ?? undefined }: ConfigOverrides = {},
): AttemptConfig {
  return {
    scorer_version: scorer.version,
    labels: scorer.labels,
    threshold: scorer.threshold,
    scoring_prompt: rubric ?? scorer.scoringPrompt,
    model_id: rule ? RULE_MODEL : scorer.modelId,
    rule: rule ?? null,
    agent_config: scorer.agentConfig,
  };
}
