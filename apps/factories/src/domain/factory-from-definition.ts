import type { Definition, ExecutionBlock, FactoryPart } from "@millwright/definition";
import { newSettings, type Factory, type FactorySettings, type Management } from "./factory.ts";
import { canonicalJson, omitUndefined, type JsonObject } from "@millwright/json";

/** Returns the settings of the factory record that a definition contains. */
export function settingsFrom({ factory }: Definition): FactorySettings {
  const defaults = factory.agent_defaults;
  return newSettings({
    name: factory.name,
    alias: factory.alias ?? null,
    description: factory.description ?? null,
    repositories: factory.repositories,
    codeForges: factory.code_forges ?? [],
    credentialStrategy: factory.credential_strategy,
    defaultEnvironment: defaults.environment_id ?? null,
    defaultModel: defaults.model ?? (defaults.harness?.type === "oz" ? (defaults.harness.model ?? null) : null),
    agentDefaults: agentDefaults(factory, defaults),
    scorerDefaults: scorerDefaults(factory),
    scoringDefaultModel: factory.scoring?.default_model ?? null,
    integrations: factory.integrations?.map((integration) => ({ ...integration })) ?? null,
    selfImprovement: factory.self_improvement ?? null,
  });
}

/**
 * Returns the settings that a definition gives a factory. An alias that was set at creation and that no definition
 * named stays.
 */
function settingsOf(factory: Factory, { definition, before }: Definitions): FactorySettings {
  const next = settingsFrom(definition);
  return { ...next, alias: next.alias ?? (before?.factory.alias === undefined ? factory.alias : null) };
}

/** A definition, and the previously active one. */
export type Definitions = { readonly definition: Definition; readonly before: Definition | undefined };

/** Returns the record after a definition version was committed. */
export const defineBy = (
  factory: Factory,
  definitions: Definitions,
  version: number,
  management: Management,
  now: Date,
): Factory => ({
  ...factory,
  ...settingsOf(factory, definitions),
  management,
  currentVersion: version,
  version: factory.version + 1,
  updatedAt: now,
});

/** Returns the names of settings that a definition would change; all of them if the factory is new to files. */
export function changedSettings(factory: Factory, definitions: Definitions): string[] {
  const next = settingsOf(factory, definitions);
  const keys = Object.keys(next) as (keyof FactorySettings)[];
  return keys
    .filter((key) => canonicalJson(next[key]) !== canonicalJson(factory[key]))
    .map(snakeCase)
    .sort();
}

/** Returns the defaults that agents inherit; what the factory grants to every agent is always added. */
function agentDefaults(factory: FactoryPart, defaults: ExecutionBlock): JsonObject {
  const { harness } = defaults;
  const secret = harness?.auth?.source === "managedSecret" ? harness.auth.secret_name : undefined;
  return {
    default_runner_uid: defaults.runner ?? "",
    mcp_servers: { ...defaults.mcp_servers, ...factory.mcp_servers },
    secrets: [...new Set([...(defaults.secrets ?? []), ...factory.secrets])].map((name) => ({ name })),
    worker_host: defaults.worker_host ?? "",
    ...(harness && {
      harness: {
        type: harness.type,
        ...omitUndefined({ model_id: harness.model, reasoning_level: harness.reasoning_level }),
      },
    }),
    ...(harness && secret !== undefined
      ? { harness_auth_secrets: { [`${harness.type}_auth_secret_name`]: secret } }
      : {}),
  };
}

function scorerDefaults({ scorer_defaults: given }: FactoryPart): JsonObject {
  return omitUndefined({
    default_runner_uid: given?.runner,
    secrets: given?.secrets?.map((name) => ({ name })),
    mcp_servers: given?.mcp_servers,
  });
}

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
