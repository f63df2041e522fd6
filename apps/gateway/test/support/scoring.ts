import type { MessageInitShape } from "@bufbuild/protobuf";
import type { scoring } from "@millwright/contracts";
import { TEAM } from "./people.ts";
import { at, CREATED, FACTORY, UPDATED } from "./records.ts";

const SCORER_UID = "0198c2d0-0000-7000-8000-00000000c0c1";
export const SCORERS = `/api/v1/factory/${FACTORY}/scorers`;
export const SCORER = `${SCORERS}/${SCORER_UID}`;

/** A scorer as its service returns it. */
export const aScorer = (fields: MessageInitShape<typeof scoring.ScorerSchema> = {}): MessageInitShape<typeof scoring.ScorerSchema> => ({
  uid: SCORER_UID, id: 3n, factoryUid: FACTORY, teamUid: TEAM, name: "Tone", description: "", scorerKind: "user", scopeMode: "all_agents",
  allowedClassifications: [{ value: "good", score: 1, description: "Kind." }, { value: "bad", score: 0 }],
  threshold: 0.5, scoringPrompt: "Is it kind?", modelId: "scripted", samplingRate: 100, version: 1, createdAt: at(CREATED), updatedAt: at(UPDATED), ...fields,
});

/** The same scorer as the public API shows it. */
export const RECORD = {
  uid: SCORER_UID, id: 3, factory_uid: FACTORY, name: "Tone", description: "", scorer_kind: "user", scope_mode: "all_agents", agent_uids: [], agents: [],
  allowed_classifications: [{ value: "good", score: 1, description: "Kind." }, { value: "bad", score: 0 }],
  threshold: 0.5, scoring_prompt: "Is it kind?", model_id: "scripted", sampling_rate: 100, agent_config: {}, rule: null, self_improvement_enabled: false, version: 1,
  created_at: CREATED, updated_at: UPDATED,
};
