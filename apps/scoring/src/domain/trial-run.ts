import type { JsonObject } from "@millwright/json";
import type { Manifest, ManifestConfiguration, PinnedRepo } from "./manifest.ts";
import { causeOfAttempt } from "./trial.ts";

/** The ordinary run that executes one attempt of a trial. It has nothing of success criteria, of other trials or of the run that its task was made from. */
export type TrialRun = {
  readonly causeKey: string;
  readonly title: string;
  readonly prompt: string;
  readonly agentUid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** On whose behalf it is created. */
  readonly creator: { readonly type: string; readonly uid: string };
  /** AgentConfigSnapshot of the configuration: above the agent's. */
  readonly dispatcherConfig: JsonObject;
  readonly repositories: readonly PinnedRepo[];
  readonly metadata: Readonly<Record<string, string>>;
};

type Run = { readonly uid: string; readonly agentUid: string; readonly factoryUid: string; readonly teamUid: string; readonly creator: { readonly type: string; readonly uid: string } };
type Attempt = { readonly trialUid: string; readonly attemptNumber: number; readonly taskUid: string; readonly configurationUid: string };

/** Returns the run of an attempt as the manifest of its benchmark run describes it. Throws when the manifest lacks its task or configuration. */
export function trialRunOf({ uid, agentUid, factoryUid, teamUid, creator }: Run, manifest: Manifest, attempt: Attempt): TrialRun {
  const { content, identifiers } = manifest;
  const task = content.tasks[identifiers.tasks.findIndex((known) => known.uid === attempt.taskUid)];
  const index = identifiers.configurations.findIndex((known) => known.uid === attempt.configurationUid);
  const configuration = content.configurations[index];
  if (!task || !configuration) throw new Error(`The manifest of benchmark run ${uid} lacks the task or the configuration of trial ${attempt.trialUid}.`);
  return {
    causeKey: causeOfAttempt(attempt.trialUid, attempt.attemptNumber),
    title: task.title,
    prompt: task.prompt,
    agentUid,
    factoryUid,
    teamUid,
    creator,
    dispatcherConfig: configOf(manifest, configuration, identifiers.configurations[index]!.runner_uid),
    repositories: task.repositories,
    metadata: { benchmark_run_id: uid, trial_id: attempt.trialUid },
  };
}

/** The harness of the platform's own agent, whose model is a member of its own. */
const OWN_HARNESS = "oz";

/**
 * Model and harness are one unit: a model alone keeps the agent's harness, and an override for the agent replaces both of its configuration.
 * Source: fields-runs §4.
 */
function configOf({ content }: Manifest, configuration: ManifestConfiguration, runnerUid: string): JsonObject {
  const [main] = configuration.agent_configs;
  const { model, harness: given } = main && (main.harness || main.model) ? main : configuration;
  const harness = given || (model ? harnessOf(content.agents[0]?.layers ?? []) : "");
  const secret = main?.harness_auth_secret_name ?? configuration.harness_auth_secret_name ?? "";
  const isOwn = harness === "" || harness === OWN_HARNESS;
  return {
    ...(harness && { harness: { type: harness, ...(model && !isOwn && { model_id: model }) } }),
    ...(model && isOwn && { model_id: model }),
    ...(runnerUid && { runner_id: runnerUid }),
    ...(secret && !isOwn && { harness_auth_secrets: { [`${harness}_auth_secret_name`]: secret } }),
  };
}

/** The harness type of the most specific layer that sets a model or a harness. */
function harnessOf(layers: readonly { readonly config: JsonObject }[]): string {
  const layer = layers.find(({ config }) => config["harness"] !== undefined || config["model_id"] !== undefined);
  const harness = layer?.config["harness"];
  const type = harness !== null && typeof harness === "object" ? (harness as JsonObject)["type"] : undefined;
  return typeof type === "string" ? type : OWN_HARNESS;
}
