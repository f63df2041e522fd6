import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { scoring } from "@millwright/contracts";
import { optionalTimestamp } from "@millwright/rpc";
import { scorerInvalid, type GivenSettings, type SettingName } from "../domain/scorer-settings.ts";
import type { Scorer } from "../domain/scorer.ts";
import type { ListedScorer } from "../usecases/list-scorers.ts";

type ScorerMessage = MessageInitShape<typeof scoring.ScorerSchema>;

export const toScorerMessage = (scorer: Scorer, agentNames: ReadonlyMap<string, string> = new Map()) =>
  ({
    uid: scorer.uid,
    id: BigInt(scorer.id),
    factoryUid: scorer.factoryUid,
    teamUid: scorer.teamUid,
    name: scorer.name,
    description: scorer.description,
    scorerKind: scorer.kind,
    scopeMode: scorer.scopeMode,
    agents: scorer.agents.map(({ agentUid, includeDescendants }) => ({
      agentUid,
      includeDescendants,
      name: agentNames.get(agentUid) ?? "",
    })),
    allowedClassifications: scorer.labels.map(({ value, score, description }) => ({
      value,
      score,
      description,
    })),
    threshold: scorer.threshold,
    scoringPrompt: scorer.scoringPrompt,
    modelId: scorer.modelId,
    samplingRate: scorer.samplingRate,
    selfImprovementEnabled: scorer.selfImprovementEnabled,
    version: scorer.version,
    createdAt: timestampFromDate(scorer.createdAt),
    updatedAt: timestampFromDate(scorer.updatedAt),
    agentConfig: (scorer.agentConfig ?? undefined) as JsonObject | undefined,
    rule: (scorer.rule ?? undefined) as JsonObject | undefined,
  }) satisfies ScorerMessage;

export const toListedMessage = (listed: ListedScorer): ScorerMessage => {
  const { scorer, agentNames, resultCount, lastScoredAt, recentOutcomes } = listed;
  const passCount = recentOutcomes.filter((outcome) => outcome === "pass").length;
  return {
    ...toScorerMessage(scorer, agentNames),
    stats: {
      resultCount: BigInt(resultCount),
      passCount,
      failCount: recentOutcomes.length - passCount,
      recentOutcomes: [...recentOutcomes],
      lastScoredAt: optionalTimestamp(lastScoredAt),
    },
  };
};

/** Returns the scorer of a request. Errors: scorer_invalid (it is missing). */
export function readScorer(message: scoring.Scorer | undefined): scoring.Scorer {
  if (!message) throw scorerInvalid("scorer", "The scorer is missing.");
  return message;
}

export const readSettings = (message: scoring.Scorer): GivenSettings => ({
  name: message.name,
  description: message.description,
  scopeMode: message.scopeMode,
  agents: message.agents.map(({ agentUid, includeDescendants }) => ({ agentUid, includeDescendants })),
  labels: message.allowedClassifications.map(({ value, score, description }) => ({
    value,
    score,
    description,
  })),
  threshold: message.threshold,
  scoringPrompt: message.scoringPrompt,
  modelId: message.modelId,
  samplingRate: message.samplingRate ?? null,
  agentConfig: message.agentConfig ?? null,
  rule: message.rule ?? null,
  selfImprovementEnabled: message.selfImprovementEnabled,
});

const NAMES: Readonly<Record<string, SettingName>> = {
  name: "name",
  description: "description",
  scope_mode: "scopeMode",
  agents: "agents",
  allowed_classifications: "labels",
  threshold: "threshold",
  scoring_prompt: "scoringPrompt",
  model_id: "modelId",
  sampling_rate: "samplingRate",
  agent_config: "agentConfig",
  rule: "rule",
  self_improvement_enabled: "selfImprovementEnabled",
};

/** Returns the settings named by an update mask. Errors: scorer_invalid (a path is not a setting). */
export const readMask = (paths: readonly string[]): ReadonlySet<SettingName> =>
  new Set(
    paths.map((path) => {
      const name = Object.hasOwn(NAMES, path) ? NAMES[path] : undefined;
      if (!name)
        throw scorerInvalid(
          "update_mask",
          `${JSON.stringify(path)} cannot be changed; update_mask names members among ${Object.keys(NAMES).join(", ")}.`,
        );
      return name;
    }),
  );
