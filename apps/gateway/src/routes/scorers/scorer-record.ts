import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import type { z } from "zod";
import { scoring } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { isoTime } from "../formats/json-values.ts";
import type { ListedScorer, NewScorer, Scorer, ScorerPatch } from "./scorer-schemas.ts";

type ScorerJson = z.input<typeof Scorer>;
type Patch = z.output<typeof ScorerPatch>;
type ScorerInit = MessageInitShape<typeof scoring.ScorerSchema>;

/** Value of `model_id` if a rule decides instead of a model. */
const RULE_MODEL = "rule";

/** Returns the public record of a scorer without statistics. */
export const scorerRecord = (scorer: scoring.Scorer): ScorerJson => ({
  uid: scorer.uid,
  id: Number(scorer.id),
  factory_uid: scorer.factoryUid,
  name: scorer.name,
  description: scorer.description,
  scorer_kind: scorer.scorerKind as ScorerJson["scorer_kind"],
  scope_mode: scorer.scopeMode as ScorerJson["scope_mode"],
  agent_uids: scorer.agents.map(({ agentUid }) => agentUid),
  agents: scorer.agents.map(({ agentUid, includeDescendants, name }) => ({
    uid: agentUid,
    include_descendants: includeDescendants,
    ...omitUndefined({ name: name || undefined }),
  })),
  allowed_classifications: scorer.allowedClassifications.map(({ value, score, description }) => ({
    value,
    score,
    ...omitUndefined({ description }),
  })),
  threshold: scorer.threshold,
  scoring_prompt: scorer.scoringPrompt,
  model_id: scorer.modelId,
  sampling_rate: scorer.samplingRate ?? 100,
  agent_config: scorer.agentConfig ?? {},
  rule: (scorer.rule ?? null) as ScorerJson["rule"],
  self_improvement_enabled: scorer.selfImprovementEnabled,
  version: scorer.version,
  created_at: isoTime(scorer.createdAt!),
  updated_at: isoTime(scorer.updatedAt!),
});

/** Returns the public record of a scorer with the statistics of lists. */
export function listedScorerRecord(scorer: scoring.Scorer): z.input<typeof ListedScorer> {
  const { resultCount = 0n, lastScoredAt, passCount = 0, failCount = 0, recentOutcomes = [] } = scorer.stats ?? {};
  return {
    ...scorerRecord(scorer),
    result_count: Number(resultCount),
    last_scored_at: lastScoredAt ? isoTime(lastScoredAt) : null,
    pass_rate_summary: {
      pass_count: passCount,
      fail_count: failCount,
      pass_rate: passRate(passCount, failCount),
      recent_outcomes: recentOutcomes as ("pass" | "fail")[],
    },
  };
}

/** Returns the share of passes, or null without outcomes. */
export const passRate = (passCount: number, failCount: number): number | null =>
  passCount + failCount === 0 ? null : passCount / (passCount + failCount);

/** Returns the message that creates a scorer. A scorer with a rule needs neither a model nor a rubric. */
export const newScorer = (factoryUid: string, body: z.output<typeof NewScorer>): scoring.Scorer =>
  create(scoring.ScorerSchema, {
    ...fieldsOf(body),
    factoryUid,
    ...(body.rule && body.model_id === undefined && { modelId: RULE_MODEL }),
  });

/**
 * Returns the message and field mask of an update: exactly the members that the client sent. `scope_mode` replaces the
 * whole scope, so it adds `agents` to the mask.
 */
export function scorerUpdate(
  ref: { factoryUid: string; uid: string },
  body: Patch,
): { scorer: scoring.Scorer; updateMask: { paths: string[] } } {
  const paths = Object.keys(body).map((name) => (name === "agent_uids" ? "agents" : name));
  const isScopeReplaced = body.scope_mode !== undefined && !paths.includes("agents");
  return {
    scorer: create(scoring.ScorerSchema, { ...fieldsOf(body), ...ref }),
    updateMask: { paths: isScopeReplaced ? [...paths, "agents"] : paths },
  };
}

/** Returns the fields of a scorer message. Null members stay unset. */
const fieldsOf = (body: Patch): ScorerInit =>
  omitUndefined({
    name: body.name,
    description: body.description ?? undefined,
    scopeMode: body.scope_mode,
    agents:
      body.agents?.map(({ uid, include_descendants: includeDescendants }) => ({ agentUid: uid, includeDescendants })) ??
      body.agent_uids?.map((agentUid) => ({ agentUid })),
    allowedClassifications: body.allowed_classifications?.map(({ value, score, description }) => ({
      value,
      score,
      ...omitUndefined({ description }),
    })),
    threshold: body.threshold,
    scoringPrompt: body.scoring_prompt,
    modelId: body.model_id,
    samplingRate: body.sampling_rate ?? undefined,
    agentConfig: body.agent_config ?? undefined,
    rule: (body.rule ?? undefined) as JsonObject | undefined,
    selfImprovementEnabled: body.self_improvement_enabled,
  });
