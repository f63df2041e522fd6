import type { Scorer } from "../domain/scorer.ts";

/** Columns that an update changes, in the order of `changedValues`. */
export const CHANGED_COLUMNS = [
  "name",
  "description",
  "scope_mode",
  "agents",
  "labels",
  "threshold",
  "scoring_prompt",
  "model_id",
  "rule",
  "sampling_rate",
  "agent_config",
  "self_improvement_enabled",
  "enabled",
  "version",
  "updated_at",
] as const;

export const changedValues = (scorer: Scorer): unknown[] => [
  scorer.name,
  scorer.description,
  scorer.scopeMode,
  JSON.stringify(
    scorer.agents.map(({ agentUid, includeDescendants }) => ({
      agent_uid: agentUid,
      include_descendants: includeDescendants,
    })),
  ),
  JSON.stringify(scorer.labels),
  scorer.threshold,
  scorer.scoringPrompt,
  scorer.modelId,
  scorer.rule && JSON.stringify(scorer.rule),
  scorer.samplingRate,
  scorer.agentConfig && JSON.stringify(scorer.agentConfig),
  scorer.selfImprovementEnabled,
  scorer.enabled,
  scorer.version,
  scorer.updatedAt,
];
