import type { Uid } from "@millwright/ids";
import type { Rule } from "./rule.ts";

export type ScorerUid = Uid<"scorer">;

export const SCORER_KINDS = ["user", "benchmark_task_correctness"] as const;
export const SCOPE_MODES = ["all_agents", "selected_agents"] as const;
export type ScorerKind = (typeof SCORER_KINDS)[number];
export type ScopeMode = (typeof SCOPE_MODES)[number];
export type JsonObject = { readonly [key: string]: unknown };

/** An agent whose runs a scorer evaluates; with `includeDescendants`, also the runs below them. */
export type ScopeAgent = { readonly agentUid: string; readonly includeDescendants: boolean };

/** A label that a judge can assign; `score` is from 0 to 1. */
export type Label = { readonly value: string; readonly score: number; readonly description?: string };

/** The settings of a scorer that people can change. */
export type ScorerSettings = {
  readonly name: string;
  readonly description: string;
  readonly scopeMode: ScopeMode;
  /** Empty for all_agents. */
  readonly agents: readonly ScopeAgent[];
  readonly labels: readonly Label[];
  /** Minimum score of a label that passes. */
  readonly threshold: number;
  readonly scoringPrompt: string;
  /** `RULE_MODEL` if a rule judges. */
  readonly modelId: string;
  /** In percent, with two decimals. */
  readonly samplingRate: number;
  readonly agentConfig: JsonObject | null;
  readonly rule: Rule | null;
  readonly selfImprovementEnabled: boolean;
};

export type Scorer = ScorerSettings & {
  readonly uid: ScorerUid;
  /** Legacy numeric id. */
  readonly id: number;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** Directory of its definition file; null if created through the API. */
  readonly slug: string | null;
  readonly kind: ScorerKind;
  /** If false, runs are not scored automatically. Only definition files can set it. */
  readonly enabled: boolean;
  readonly version: number;
  readonly creator: { readonly type: string; readonly uid: string };
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** `model_id` of scorers whose judge is a rule. */
export const RULE_MODEL = "rule";

/** Returns whether a score passes with the given threshold. */
export const outcomeOf = (score: number, threshold: number): "pass" | "fail" => (score >= threshold ? "pass" : "fail");
