import type { JsonObject } from "@millwright/json";
import { launchInvalid } from "../domain/launch.ts";
import {
  withoutIdentifiers,
  type ManifestAgent,
  type ManifestConfiguration,
  type ManifestScorer,
} from "../domain/manifest.ts";
import type { Scorer } from "../domain/scorer.ts";
import type { Configuration } from "../domain/suite.ts";
import type { SuiteAgent } from "./suite-references.ts";

export type SkillText = { readonly name: string; readonly description: string; readonly body: string };

/** Returns the record of a scorer in a manifest. */
export const frozenScorer = (scorer: Scorer): ManifestScorer => ({
  name: scorer.name,
  kind: scorer.kind,
  labels: scorer.labels,
  threshold: scorer.threshold,
  scoring_prompt: scorer.scoringPrompt,
  model_id: scorer.modelId,
  rule: scorer.rule,
  agent_config: scorer.agentConfig === null ? null : withoutIdentifiers(scorer.agentConfig as JsonObject),
});

export const scorerIdentifiers = (scorers: readonly Scorer[]) =>
  scorers.map(({ uid, id, version }) => ({ uid, id, version }));

/** Returns the names of the skills that an agent can use. */
export const skillNames = ({ layers }: SuiteAgent): string[] => {
  const names = layers.map(({ config }) => config["skills"]).find((value) => Array.isArray(value));
  return Array.isArray(names) ? names.map(String) : [];
};

/** Returns the record of an agent in a manifest. */
export const frozenAgent = (
  agent: SuiteAgent,
  environment: JsonObject | undefined,
  skills: ReadonlyMap<string, SkillText>,
): ManifestAgent => ({
  name: agent.name,
  layers: agent.layers.map(({ source, config }) => ({ source, config: withoutIdentifiers(config) })),
  environment: environment === undefined ? null : withoutIdentifiers(environment),
  skills: skillNames(agent).map((name) => skills.get(name) ?? { name, description: "", body: "" }),
});

/**
 * Returns the record of a configuration in a manifest. Errors: launch_invalid if it overrides an agent that the suite's
 * agent cannot delegate to.
 */
export function frozenConfiguration(
  configuration: Configuration,
  agents: readonly SuiteAgent[],
  runner: string,
): ManifestConfiguration {
  const stranger = configuration.agent_configs.find(
    (override) => !agents.some(({ uid }) => uid === override.agent_uid),
  );
  if (stranger)
    throw launchInvalid(
      "configurations",
      `agent_configs names ${stranger.agent_uid}, which is neither the suite's agent nor one that it can delegate to.`,
    );
  return {
    role: configuration.role,
    display_name: configuration.display_name,
    harness: configuration.harness,
    model: configuration.model,
    runner,
    harness_auth_secret_name: configuration.harness_auth_secret_name,
    agent_configs: agents.map(({ uid, name }) => {
      const {
        harness = "",
        model = "",
        harness_auth_secret_name: secret = null,
      } = configuration.agent_configs.find((override) => override.agent_uid === uid) ?? {};
      return { agent_name: name, harness, model, harness_auth_secret_name: secret };
    }),
  };
}
