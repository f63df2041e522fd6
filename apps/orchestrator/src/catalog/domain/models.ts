import { invalidArgument } from "@millwright/errors";
import type { Harness } from "./agent-config.ts";
import {
  harnessProvider,
  MODEL_PROVIDERS,
  providerNamed,
  type ModelProvider,
  type PlatformProvider,
} from "./model-providers.ts";

/**
 * A model that a run can name. `provider` is the provider that the worker calls; `publicProvider` is its published enum
 * value.
 */
export type Model = {
  readonly id: string;
  readonly displayName: string;
  readonly provider: string;
  readonly publicProvider: "OPENAI" | "ANTHROPIC" | "GOOGLE" | "UNKNOWN";
  readonly visionSupported: boolean;
  readonly description: string;
  readonly reasoningLevel?: string;
  /** Why the model cannot be used now, as a published enum value, with a message that states how to enable it. */
  readonly disabled?: { readonly reason: "ADMIN_DISABLED"; readonly message: string };
};

/** The built-in model without AI. It runs the steps that are written in the prompt. */
export const SCRIPTED = "scripted";
/**
 * Returns whether an id in a request or a definition means the platform's default model: `auto`, and names such as
 * `auto-fast`, which select a model automatically on other platforms.
 */
const isAuto = (id: string): boolean => /^auto($|-)/.test(id);

const scripted: Model = {
  id: SCRIPTED,
  displayName: "Scripted (no AI)",
  provider: "scripted",
  publicProvider: "UNKNOWN",
  visionSupported: false,
  description:
    "No AI: runs the steps written in a fenced `scripted` block of the prompt. Uses no tokens and costs nothing.",
};

/** Well-known models. Each requires that its provider is configured. */
const WELL_KNOWN: readonly (readonly [id: string, displayName: string, provider: ModelProvider["name"]])[] = [
  ["claude-opus-5-5", "Claude Opus 5.5", "anthropic"],
  ["claude-sonnet-5-5", "Claude Sonnet 5.5", "anthropic"],
  ["claude-opus-4-5", "Claude Opus 4.5", "anthropic"],
  ["claude-sonnet-4-5", "Claude Sonnet 4.5", "anthropic"],
  ["claude-haiku-4-5", "Claude Haiku 4.5", "anthropic"],
  ["gpt-5.1", "GPT-5.1", "openai"],
  ["gpt-5-mini", "GPT-5 mini", "openai"],
  ["gemini-3.8-flash", "Gemini 3.8 Flash", "google"],
  ["gemini-3.5-flash-lite", "Gemini 3.5 Flash-Lite", "google"],
];

export type ModelCatalogue = {
  readonly defaultModelId: string;
  readonly models: readonly Model[];
  /** Names of the configured providers. */ readonly providers: readonly string[];
  readonly aliases: ModelAliases;
};

/** The operator's aliases: alias → model. */
export type ModelAliases = Readonly<Record<string, string>>;

/**
 * Returns all listed models, the default first. A model is usable if its provider is configured. `scripted` is always
 * usable, and is the default only while no provider offers a model.
 *
 * @param platform providers that the operator configured for all teams
 * @param teamSecrets names of the team's managed secrets
 */
export function modelCatalogue(
  platform: readonly PlatformProvider[],
  teamSecrets: readonly string[] = [],
  aliases: ModelAliases = {},
): ModelCatalogue {
  const providers = MODEL_PROVIDERS.filter(
    ({ name, decidingName }) =>
      teamSecrets.includes(decidingName) || platform.some(({ provider }) => provider === name),
  ).map(({ name }) => name);
  const listed = WELL_KNOWN.map(([id, displayName, provider]) =>
    modelOf(
      id,
      displayName,
      MODEL_PROVIDERS.find(({ name }) => name === provider)!,
      providers,
    ),
  );
  const ofTeam = MODEL_PROVIDERS.filter(({ decidingName }) => teamSecrets.includes(decidingName)).map(
    ({ name }): string => name,
  );
  // A team's own server may lack the models that the operator listed for the platform's server.
  const offered = platform.filter(({ provider }) => !ofTeam.includes(provider));
  const added = offered.flatMap(({ provider, models = [] }) =>
    models.map((id) => `${provider}/${id}`).flatMap((id) => prefixed(id, providers) ?? []),
  );
  const known = [...listed, ...added, defaultOfServer(providers)];
  const first = known.find((model) => !model.disabled) ?? scripted;
  return {
    defaultModelId: first.id,
    models: [first, ...[...known, scripted].filter((model) => model !== first)],
    providers,
    aliases,
  };
}

/**
 * Returns the default model of an OpenAI-compatible server, used if none is named. The worker asks the server for its
 * id.
 */
const defaultOfServer = (configured: readonly string[]): Model => ({
  ...modelOf(
    "openai-compatible/default",
    "Default of an OpenAI-compatible server",
    providerNamed("openai-compatible")!,
    configured,
  ),
  description:
    "The first model that the configured OpenAI-compatible server lists. Name another one as openai-compatible/<id>.",
});

function modelOf(id: string, displayName: string, provider: ModelProvider, configured: readonly string[]): Model {
  const model = {
    id,
    displayName,
    provider: provider.name,
    publicProvider: provider.publicName,
    description: `A model of ${provider.title}.`,
  };
  const disabled = configured.includes(provider.name)
    ? {}
    : { disabled: { reason: "ADMIN_DISABLED", message: notConfigured(provider) } as const };
  return { ...model, ...disabled, visionSupported: provider.name !== "openai-compatible" };
}

/** Returns the model of an id `<provider>/<id>`, where `id` is any id that the provider knows. */
function prefixed(id: string, configured: readonly string[]): Model | undefined {
  const provider = MODEL_PROVIDERS.find(({ name }) => id.startsWith(`${name}/`) && id.length > name.length + 1);
  return provider && modelOf(id, id, provider, configured);
}

const notConfigured = ({ title, decidingName }: ModelProvider): string =>
  `No model provider for ${title} is configured. Give the team the managed secret ${decidingName}, or start the platform with ${decidingName} in its environment.`;

/**
 * Returns the model of a name: `auto`, an alias, or an id. Listed models are found with and without the prefix of their
 * provider; other models need the prefix. Returns undefined if there is none.
 */
export function findModel(catalogue: ModelCatalogue, name: string): Model | undefined {
  const meant = Object.hasOwn(catalogue.aliases, name) ? catalogue.aliases[name]! : name;
  const id = isAuto(meant) ? catalogue.defaultModelId : meant;
  return (
    catalogue.models.find((candidate) => candidate.id === id || `${candidate.provider}/${candidate.id}` === id) ??
    prefixed(id, catalogue.providers)
  );
}

/** The model of a third-party harness: its id as the provider knows it, and the provider. */
export type HarnessModel = { readonly id: string; readonly provider: string };

/**
 * Returns the model of a harness.
 *
 * - A harness with one provider gets any id unchanged; without an id it uses its own default ("" here).
 * - A harness that can call any provider gets a model of the catalogue, by its id or with its provider's prefix;
 *   without an id it gets the platform's default model.
 *
 * It is not an error if the provider is not configured, because the harness may have a key of its own.
 *
 * Errors: model_unknown.
 */
export function harnessModel(catalogue: ModelCatalogue, { type, modelId }: Harness): HarnessModel {
  const provider = harnessProvider(type);
  if (provider !== undefined) return { id: modelId ?? "", provider };
  const model = findModel(catalogue, modelId ?? catalogue.defaultModelId);
  if (!model || model.id === SCRIPTED)
    throw invalidArgument(
      "model_unknown",
      `${model ? `The harness "${type}" requires a model of a provider` : `There is no model "${modelId}"`}. Set harness.model_id to a listed model or <provider>/<model>.`,
      { model_id: modelId ?? "" },
    );
  return {
    id: model.id.startsWith(`${model.provider}/`) ? model.id.slice(model.provider.length + 1) : model.id,
    provider: model.provider,
  };
}

/**
 * Returns the model of a run for the requested name. No name and `auto` mean the default.
 *
 * Errors: model_unknown · model_disabled, whose message states how to enable it.
 */
export function chooseModel(catalogue: ModelCatalogue, requested: string | undefined): Model {
  const name = requested ?? catalogue.defaultModelId;
  const model = findModel(catalogue, name);
  if (!model)
    throw invalidArgument("model_unknown", `There is no model "${name}". GET /agent/models lists them.`, {
      model_id: name,
    });
  if (model.disabled)
    throw invalidArgument("model_disabled", `The model "${name}" is disabled. ${model.disabled.message}`, {
      model_id: name,
    });
  return model;
}
