import { invalidArgument, type DomainError } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import { readLayerConfig, type JsonObject, type LayerConfig } from "../../catalog/domain/agent-config.ts";
import type { ConfigLayer } from "../../catalog/domain/config-resolution.ts";
import { SCRIPTED } from "../../catalog/domain/models.ts";

/** The source of judge runs. No other run has it. */
export const JUDGE_SOURCE = "RUN_SCORER";

/**
 * The scorer that a judge run reports to, and the labels that it may report. Without labels, the outcome of the run is
 * the verdict (a rule's command).
 */
export type Judge = { readonly scorerUid: string; readonly classifications: readonly string[] };

/** A judge as stored in the frozen configuration of a run. */
export type FrozenJudge = { readonly scorer_uid: string; readonly classifications: readonly string[] };

/**
 * Returns the configuration levels of a judge run: the settings that the request itself names, and only the default
 * model of the less specific levels. Repositories, environments, prompts, skills, secrets and MCP servers of an agent,
 * a factory or a team do not apply.
 *
 * Errors: config_conflict (a harness other than the built-in one) · those of `readLayerConfig`.
 */
export function judgeLayers(
  config: JsonObject,
  below: readonly { readonly source: ConfigLayer["source"]; readonly config: JsonObject }[],
): ConfigLayer[] {
  const requested = readLayerConfig(config);
  if (requested.harness && requested.harness.type !== "oz")
    throw conflict(`config.harness.type must be "oz" for a judge run (got "${requested.harness.type}").`, "harness");
  return [
    { source: "request", config: namedByRequest(requested) },
    ...below.map(({ source, config: json }) => ({ source, config: modelDefault(readLayerConfig(json)) })),
  ];
}

const namedByRequest = ({
  name,
  modelId,
  harness,
  runner,
  mcpServers,
  secrets,
  workerHost,
  idleTimeoutMinutes,
  stepLimit,
  tokenLimit,
  costLimitMicros,
}: LayerConfig): LayerConfig =>
  omitUndefined({
    name,
    modelId: modelId ?? harness?.modelId,
    runner,
    mcpServers,
    secrets,
    workerHost,
    idleTimeoutMinutes,
    stepLimit,
    tokenLimit,
    costLimitMicros,
  });

/**
 * Returns the default model of a level. A model that is set for a third-party harness does not apply to the built-in
 * one.
 */
const modelDefault = ({ modelId, harness }: LayerConfig): LayerConfig => {
  if (harness && harness.type !== "oz") return {};
  const model = modelId ?? harness?.modelId;
  return model ? { modelId: model } : {};
};

/**
 * Throws `config_conflict` if a judge without labels has a model other than the scripted one. Such a judge runs a
 * command, which only the scripted model does.
 */
export function checkJudgeModel({ classifications }: Judge, modelId: string): void {
  if (classifications.length === 0 && modelId !== SCRIPTED)
    throw conflict(
      `config.model_id must be "${SCRIPTED}" for a judge run without classifications (got "${modelId}").`,
      "model_id",
    );
}

const conflict = (message: string, key: string): DomainError => invalidArgument("config_conflict", message, { key });
