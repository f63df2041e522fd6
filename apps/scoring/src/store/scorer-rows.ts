import { as } from "@millwright/ids";
import type { Rule } from "../domain/rule.ts";
import type { JsonObject, Label, ScopeMode, Scorer, ScorerKind, ScorerUid } from "../domain/scorer.ts";

export type ScorerRow = {
  uid: string;
  id: number;
  factory_uid: string;
  team_uid: string;
  slug: string | null;
  name: string;
  description: string;
  kind: ScorerKind;
  scope_mode: ScopeMode;
  agents: { agent_uid: string; include_descendants: boolean }[];
  labels: Label[];
  threshold: number;
  scoring_prompt: string;
  model_id: string;
  rule: Rule | null;
  sampling_rate: number;
  agent_config: JsonObject | null;
  self_improvement_enabled: boolean;
  enabled: boolean;
  version: number;
  creator_type: string;
  creator_uid: string;
  created_at: Date;
  updated_at: Date;
};

/** Columns of `ScorerRow`, for the table alias `s`. */
export const SCORER_COLUMNS = `
  s.uid, s.id, s.factory_uid, s.team_uid, s.slug, s.name, s.description, s.kind, s.scope_mode, s.agents, s.labels, s.threshold,
  s.scoring_prompt, s.model_id, s.rule, s.sampling_rate::float8 AS sampling_rate, s.agent_config, s.self_improvement_enabled, s.enabled,
  s.version, s.creator_type, s.creator_uid, s.created_at, s.updated_at`;

export const toScorer = (row: ScorerRow): Scorer => ({
  uid: as<ScorerUid>(row.uid),
  id: row.id,
  factoryUid: row.factory_uid,
  teamUid: row.team_uid,
  slug: row.slug,
  name: row.name,
  description: row.description,
  kind: row.kind,
  scopeMode: row.scope_mode,
  agents: row.agents.map((agent) => ({ agentUid: agent.agent_uid, includeDescendants: agent.include_descendants })),
  labels: row.labels,
  threshold: row.threshold,
  scoringPrompt: row.scoring_prompt,
  modelId: row.model_id,
  rule: row.rule,
  samplingRate: row.sampling_rate,
  agentConfig: row.agent_config,
  selfImprovementEnabled: row.self_improvement_enabled,
  enabled: row.enabled,
  version: row.version,
  creator: { type: row.creator_type, uid: row.creator_uid },
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});
