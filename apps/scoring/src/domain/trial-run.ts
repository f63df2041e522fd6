import type { JsonObject } from "@millwright/json";
import type { Manifest, ManifestConfiguration, PinnedRepo } from "./manifest.ts";
import { causeOfAttempt } from "./trial.ts";

/**
 * The ordinary run that executes one attempt of a trial. It contains nothing of the success criteria, of other trials
 * or of the run that its task was created from.
 */
export type TrialRun = {
  readonly causeKey: string;
  readonly title: string;
  readonly prompt: string;
  readonly agentUid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** The principal on whose behalf the run is created. */
  readonly creator: { readonly type: string; readonly uid: string };
  /** AgentConfigSnapshot of the configuration, which takes precedence over the agent's layers. */
  readonly dispatcherConfig: JsonObject;
  /** AgentConfigSnapshots for the agents that it can delegate to, by uid. */
  readonly agentOverrides: Readonly<Record<string, JsonObject>>;
  readonly repositories: readonly PinnedRepo[];
  readonly metadata: Readonly<Record<string, string>>;
};

type Run = {
  readonly uid: string;
  readonly agentUid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly creator: { readonly type: string; readonly uid: string };
};
type Attempt = {
  readonly trialUid: string;
  readonly attemptNumber: number;
  readonly taskUid: string;
  readonly configurationUid: string;
};

/**
 * Returns the run of an attempt as described by the manifest of its benchmark run. Throws an Error if the manifest
 * lacks its task or configuration.
 */
export function trialRunOf(
  { uid, agentUid, factoryUid, teamUid, creator }: Run,
  manifest: Manifest,
  attempt: Attempt,
): TrialRun {
  const { content, identifiers } = manifest;
  const task = content.tasks[identifiers.tasks.findIndex((known) => known.uid === attempt.taskUid)];
  const index = identifiers.configurations.findIndex((known) => known.uid === attempt.configurationUid);
  const configuration = content.configurations[index];
  if (!task || !configuration)
    throw new Error(
      `The manifest of benchmark run ${uid} lacks the task or the configuration of trial ${attempt.trialUid}.`,
    );
  return {
    causeKey: causeOfAttempt(attempt.trialUid, attempt.attemptNumber),
    title: task.title,
    prompt: task.prompt,
    agentUid,
    factoryUid,
    teamUid,
    creator,
    dispatcherConfig: mainConfigOf(manifest, configuration, identifiers.configurations[index]!.runner_uid),
    agentOverrides: overridesOf(manifest, configuration),
    repositories: task.repositories,
    metadata: { benchmark_run_id: uid, trial_id: attempt.trialUid },
  };
}

/** The harness of the platform's own agent, whose model is set by `model_id`. */
const OWN_HARNESS = "oz";

/**
 * Returns the configuration for the suite's agent. An override for this agent replaces the configuration's model and
 * harness.
 */
function mainConfigOf({ content }: Manifest, configuration: ManifestConfiguration, runnerUid: string): JsonObject {
  const [main] = configuration.agent_configs;
  const chosen = main && (main.harness || main.model) ? main : configuration;
  const secret = main?.harness_auth_secret_name ?? configuration.harness_auth_secret_name ?? "";
  return { ...configOf(content.agents[0]?.layers ?? [], chosen, secret), ...(runnerUid && { runner_id: runnerUid }) };
}

/** Returns the configurations for the agents that the suite's agent can delegate to. */
function overridesOf(
  { content, identifiers }: Manifest,
  { agent_configs: overrides }: ManifestConfiguration,
): Record<string, JsonObject> {
  return Object.fromEntries(
    overrides.slice(1).flatMap((override, at) => {
      const index = at + 1;
      const config = configOf(content.agents[index]?.layers ?? [], override, override.harness_auth_secret_name ?? "");
      const uid = identifiers.agents[index]?.uid;
      return uid === undefined || Object.keys(config).length === 0 ? [] : [[uid, config]];
    }),
  );
}

/**
 * Returns a configuration with model and harness, which form one unit: a model without a harness retains the agent's
 * harness.
 */
function configOf(
  layers: Layers,
  { model, harness: given }: { readonly model: string; readonly harness: string },
  secret: string,
): JsonObject {
  const harness = given || (model ? harnessOf(layers) : "");
  const isOwn = harness === "" || harness === OWN_HARNESS;
  return {
    ...(harness && { harness: { type: harness, ...(model && !isOwn && { model_id: model }) } }),
    ...(model && isOwn && { model_id: model }),
    ...(secret && !isOwn && { harness_auth_secrets: { [`${harness}_auth_secret_name`]: secret } }),
  };
}

type Layers = readonly { readonly config: JsonObject }[];

/** Returns the harness type of the most specific layer that sets a model or a harness. */
function harnessOf(layers: Layers): string {
  const layer = layers.find(({ config }) => config["harness"] !== undefined || config["model_id"] !== undefined);
  const harness = layer?.config["harness"];
  const type = harness !== null && typeof harness === "object" ? (harness as JsonObject)["type"] : undefined;
  return typeof type === "string" ? type : OWN_HARNESS;
}
