import type { ScorerPart } from "@millwright/definition";
import { invalidArgument } from "@millwright/errors";
import { checkSettings, type GivenSettings } from "./scorer-settings.ts";
import type { ScopeAgent, ScorerSettings } from "./scorer.ts";

/**
 * Returns the scorers of a normalised definition. The sender has validated the definition, so a wrong form is an error
 * of the sender.
 *
 * Errors: definition_malformed (invalid_argument).
 */
export function readDefinedScorers(definition: Readonly<Record<string, unknown>>): ScorerPart[] {
  const parts = definition["scorers"] ?? []; // absent in definitions of early versions
  if (!Array.isArray(parts)) throw malformed();
  return parts.map((part: unknown) => {
    const {
      slug,
      name,
      agents,
      labels,
      passing_score: passing,
      sampling_rate: rate,
      model,
      prompt,
    } = (part ?? {}) as Partial<ScorerPart>;
    const hasAgents = agents === "*" || (Array.isArray(agents) && agents.every((agent) => typeof agent === "string"));
    const hasTexts = [slug, name, model, prompt].every((text) => typeof text === "string");
    if (!hasTexts || !hasAgents || !Array.isArray(labels) || typeof passing !== "number" || typeof rate !== "number")
      throw malformed();
    return part as ScorerPart;
  });
}

/** Returns the settings of a defined scorer whose agents have these uids. Errors: scorer_invalid. */
export function settingsOf(part: ScorerPart, agentUids: readonly string[]): ScorerSettings {
  const agents = agentUids.map((agentUid): ScopeAgent => ({ agentUid, includeDescendants: false }));
  const settings = checkSettings({ ...givenOf(part), scopeMode: "all_agents", agents: [] });
  return part.agents === "*" ? settings : { ...settings, scopeMode: "selected_agents", agents };
}

const givenOf = (part: ScorerPart): Omit<GivenSettings, "scopeMode" | "agents"> => ({
  name: part.name,
  description: part.description ?? "",
  labels: part.labels,
  threshold: part.passing_score,
  scoringPrompt: part.prompt,
  modelId: part.model,
  samplingRate: part.sampling_rate,
  agentConfig: null,
  rule: null,
  selfImprovementEnabled: part.self_improvement,
});

/** Keys of the file for API members; most of them are named differently. */
const FILE_KEYS: Readonly<Record<string, string>> = {
  name: "name",
  description: "description",
  allowed_classifications: "labels",
  threshold: "passingScore",
  sampling_rate: "samplingRate",
  model_id: "model",
};

/** Returns the keys of a member in the file; empty for the rubric, which is the text of the file. */
export const fileKeysOf = (field: string | undefined): string[] =>
  field !== undefined && Object.hasOwn(FILE_KEYS, field) ? [FILE_KEYS[field]!] : [];

export const fileOf = ({ slug }: Pick<ScorerPart, "slug">): string => `scorers/${slug}/scorer.md`;

const malformed = (): Error =>
  invalidArgument("definition_malformed", "The definition's scorers have an invalid form.");
