import { omitUndefined } from "@millwright/json";
import {
  IDLE_TIMEOUT_MINUTES,
  type CredentialStrategy,
  type Harness,
  type JsonObject,
  type LayerConfig,
} from "./agent-config.ts";

/** The levels that may configure a run, most specific first. */
export const LAYER_ORDER = ["request", "dispatcher", "agent", "factory", "team"] as const;
export type LayerSource = (typeof LAYER_ORDER)[number];

export type ConfigLayer = { readonly source: LayerSource; readonly config: LayerConfig };

/** The source of each resolved key: a level, `default` (the platform's default), or several levels joined with `+`. */
export type Provenance = Readonly<Record<string, string>>;

/** The resolved value of every key. `modelId` absent: the platform's default model. */
export type ResolvedConfig = LayerConfig & {
  readonly harness: Harness;
  readonly skills: readonly string[];
  readonly secrets: readonly string[];
  readonly mcpServers: JsonObject;
  readonly idleTimeoutMinutes: number;
  readonly computerUseEnabled: boolean;
  readonly credentialStrategy: CredentialStrategy;
};

/** Keys whose value is replaced as a whole by the most specific level that sets it. */
const REPLACED_KEYS = [
  ...([
    "name",
    "basePrompt",
    "environmentId",
    "runner",
    "skills",
    "mcpServers",
    "computerUseEnabled",
    "computerUseModelId",
  ] as const),
  ...([
    "idleTimeoutMinutes",
    "workerHost",
    "harnessAuthSecrets",
    "sessionSharing",
    "memoryStores",
    "inferenceProviders",
  ] as const),
  ...(["credentialStrategy", "onWorkerLoss", "prompt", "repositories"] as const),
] satisfies readonly (keyof LayerConfig)[];

/** Values of `worker_host` that mean "any worker of the platform". */
const PLATFORM_HOSTS: readonly string[] = ["warp", "service"];

/**
 * Returns the configuration that results from all levels, given in any order, and the source of each key:
 *
 * - model and harness are one unit: a level that sets either replaces both;
 * - lists and maps of a more specific level replace those of less specific levels, except that a request's secrets are
 *   added to the agent's;
 * - secrets and MCP servers granted by the factory are always added;
 * - limits only narrow: the lowest value of all levels applies;
 * - for every other key, the most specific level wins.
 */
export function resolveConfig(given: readonly ConfigLayer[]): { config: ResolvedConfig; provenance: Provenance } {
  const layers = LAYER_ORDER.flatMap((source) => given.filter((layer) => layer.source === source));
  const provenance: Record<string, string> = {};
  const values: Record<string, unknown> = {};
  for (const key of REPLACED_KEYS) {
    const layer = layers.find(({ config }) => config[key] !== undefined);
    if (!layer) continue;
    values[key] = layer.config[key];
    provenance[key] = layer.source;
  }
  if (PLATFORM_HOSTS.includes(values["workerHost"] as string)) delete values["workerHost"];

  const model = resolveModel(layers);
  const secrets = resolveSecrets(layers);
  const mcpServers = resolveMcpServers(layers);
  const limits = resolveLimits(layers);
  Object.assign(provenance, model.provenance, secrets.provenance, mcpServers.provenance, limits.provenance);
  const config = {
    idleTimeoutMinutes: IDLE_TIMEOUT_MINUTES.default,
    computerUseEnabled: true,
    credentialStrategy: "EXECUTOR" as const,
    skills: [],
    ...(values as LayerConfig),
    ...model.values,
    ...limits.value,
    secrets: secrets.value,
    mcpServers: mcpServers.value,
  };
  for (const key of ["idleTimeoutMinutes", "computerUseEnabled", "credentialStrategy"]) provenance[key] ??= "default";
  return { config: omitUndefined(config), provenance };
}

type Found<T> = { value: T; provenance: Provenance };

function resolveModel(layers: readonly ConfigLayer[]): {
  values: { harness: Harness; modelId?: string };
  provenance: Provenance;
} {
  const layer = layers.find(({ config }) => config.modelId !== undefined || config.harness !== undefined);
  const source = layer?.source ?? "default";
  const harness: Harness = layer?.config.harness ?? { type: "oz" };
  // A third-party harness never gets the top-level model. The built-in harness gets its model only from the level that
  // sets model or harness.
  if (harness.type !== "oz") return { values: { harness }, provenance: { harness: source } };
  const modelId = layer?.config.modelId ?? harness.modelId;
  return {
    values: { harness: { type: "oz" }, ...(modelId ? { modelId } : {}) },
    provenance: { harness: source, modelId: modelId ? source : "default" },
  };
}

function resolveSecrets(layers: readonly ConfigLayer[]): Found<readonly string[]> {
  const requested = layers.filter(({ source, config }) => source === "request" && config.secrets !== undefined);
  const own = layers.find(({ source, config }) => source !== "request" && config.secrets !== undefined);
  const listed = [...requested, ...(own ? [own] : [])].map(({ source, config }) => ({
    source,
    names: config.secrets ?? [],
  }));
  const granted = layers.flatMap(({ source, config }) =>
    config.grantedSecrets ? [{ source, names: config.grantedSecrets }] : [],
  );
  const parts = [...listed, ...granted].filter(({ names }) => names.length > 0);
  return {
    value: [...new Set(parts.flatMap(({ names }) => names))],
    provenance: from(
      "secrets",
      parts.map(({ source }) => source),
    ),
  };
}

function resolveMcpServers(layers: readonly ConfigLayer[]): Found<JsonObject> {
  const own = layers.find(({ config }) => config.mcpServers !== undefined);
  const granted = layers.filter(({ config }) => config.grantedMcpServers !== undefined);
  const value = Object.assign(
    {},
    ...granted.map(({ config }) => config.grantedMcpServers),
    own?.config.mcpServers,
  ) as JsonObject;
  return {
    value,
    provenance: from(
      "mcpServers",
      [...(own ? [own] : []), ...granted].map(({ source }) => source),
    ),
  };
}

const LIMIT_KEYS = ["stepLimit", "tokenLimit", "costLimitMicros"] as const;

function resolveLimits(layers: readonly ConfigLayer[]): Found<Pick<LayerConfig, (typeof LIMIT_KEYS)[number]>> {
  const lowest = LIMIT_KEYS.flatMap((key) => {
    const [first] = layers
      .filter(({ config }) => config[key] !== undefined)
      .toSorted((a, b) => a.config[key]! - b.config[key]!);
    return first ? [{ key, value: first.config[key]!, source: first.source }] : [];
  });
  return {
    value: Object.fromEntries(lowest.map(({ key, value }) => [key, value])),
    provenance: Object.fromEntries(lowest.map(({ key, source }) => [key, source])),
  };
}

const from = (key: string, sources: readonly string[]): Provenance =>
  sources.length > 0 ? { [key]: [...new Set(sources)].join("+") } : {};
