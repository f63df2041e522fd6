import type { AttemptConfig } from "./attempt.ts";
import type { Rule } from "./rule.ts";
import { RULE_MODEL, type Scorer } from "./scorer.ts";

/** Values of a benchmark task that replace those of the scorer. */
export type ConfigOverrides = {
  readonly rubric?: string | undefined;
  /** If present, a rule judges and no model is called. */
  readonly rule?: Rule | undefined;
};

/** The members of a scorer, or of its record in a manifest, that a judge uses. */
export type JudgeSource = Pick<
  Scorer,
  "uid" | "version" | "labels" | "threshold" | "scoringPrompt" | "modelId" | "rule" | "agentConfig"
>;

/** Returns the configuration of an attempt's judge: the scorer as given, with the overrides applied. */
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
