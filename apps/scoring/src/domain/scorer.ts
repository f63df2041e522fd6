import type { Uid } from "@millwright/ids";
import type { Rule } from "./rule.ts";

export type ScorerUid = Uid<"scorer">;

export const SCORER_KINDS = ["user", "benchmark_task_correctness"] as const;
export const SCOPE_MODES = ["all_agents", "selected_agents"] as const;
export type ScorerKind = (typeof SCORER_KINDS)[number];
export type ScopeMode = (typeof SCOPE_MODES)[number];
export type JsonObject = { readonly [key: string]: unknown };

/** An agent whose runs a scorer evaluates; with descendants, also the runs below those. */
export type ScopeAgent = { readonly agentUid: string; readonly includeDescendants: boolean };

/** What a judge may answer; `score` is from 0 to 1. */
export type Label = { readonly value: string; readonly score: number; readonly description?: string };

/** What people set. Source: fields-factory §8.1, §8.2. */
export type ScorerSettings = {
  readonly name: string;
  readonly description: string;
  readonly scopeMode: ScopeMode;
  /** Empty for all_agents. */
  readonly agents: readonly ScopeAgent[];
  readonly labels: readonly Label[];
  /** A label passes when its score is at least this. */
  readonly threshold: number;
  readonly scoringPrompt: string;
  /** `RULE_MODEL` when a rule judges. */
  readonly modelId: string;
  /** Percent with two decimals. */
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
  /** Directory of its definition file; null: created through the API. */
  readonly slug: string | null;
  readonly kind: ScorerKind;
  /** False: no automatic scoring; only definition files can say so. */
  readonly enabled: boolean;
  readonly version: number;
  readonly creator: { readonly type: string; readonly uid: string };
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** `model_id` of scorers whose judge is a rule. */
export const RULE_MODEL = "rule";

/** Whether a score passes, by the threshold as it is now. */
export const outcomeOf = (score: number, threshold: number): "pass" | "fail" => (score >= threshold ? "pass" : "fail");
