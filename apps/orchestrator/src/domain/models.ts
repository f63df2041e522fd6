import { invalidArgument } from "@millwright/errors";
import type { Harness } from "./agent-config.ts";
import {
  harnessProvider,
  MODEL_PROVIDERS,
  providerNamed,
  type ModelProvider,
  type PlatformProvider,
} from "./model-providers.ts";

/** A model that a run can name. `provider` is what the worker calls it by; `publicProvider` is the published enum. */
export type Model = {
  readonly id: string;
  readonly displayName: string;
  readonly provider: string;
  readonly publicProvider: "OPENAI" | "ANTHROPIC" | "GOOGLE" | "UNKNOWN";
  readonly visionSupported: boolean;
  readonly description: string;
  readonly reasoningLevel?: string;
  /** Why it cannot be used now, in the published enum, with a text that says what to do. */
  readonly disabled?: { readonly reason: "ADMIN_DISABLED"; readonly message: string };
};

/** The built-in model without AI: runs the steps written in the prompt. */
export const SCRIPTED = "scripted";
/** In a request or a definition: the platform's default model. Names such as `auto-fast`, by which other platforms choose among theirs, mean it too. */
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

/** Models that people are likely to name; each needs its provider to be configured. */
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

/** What the operator calls models besides: the model that a name stands for. */
export type ModelAliases = Readonly<Record<string, string>>;

/**
 * Every listed model, the default first. A model is usable when its provider is configured; `scripted` always is, and is the
 * default only while no provider offers a model (execution design §6.3).
 *
 * @param platform providers that the operator configured for everybody
 * @param teamSecrets names of the managed secrets that the team has
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
  // A team's own server need not have the models that the operator named for the platform's.
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

/** The model of an OpenAI-compatible server when none is named; the worker asks the server for it. */
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

/** `<provider>/<id>`: any model of a provider, by the id that the provider knows. */
function prefixed(id: string, configured: readonly string[]): Model | undefined {
  const provider = MODEL_PROVIDERS.find(({ name }) => id.startsWith(`${name}/`) && id.length > name.length + 1);
  return provider && modelOf(id, id, provider, configured);
}

const notConfigured = ({ title, decidingName }: ModelProvider): string =>
  `No model provider for ${title} is configured. Give the team the managed secret ${decidingName}, or start the platform with ${decidingName} in its environment.`;

/**
 * The model of a name: the default's, an operator's name for one, or an id, listed or with its provider's prefix; undefined when there is none.
 * A listed one needs no prefix but may have it.
 */
export function findModel(catalogue: ModelCatalogue, name: string): Model | undefined {
  const meant = Object.hasOwn(catalogue.aliases, name) ? catalogue.aliases[name]! : name;
  const id = isAuto(meant) ? catalogue.defaultModelId : meant;
  return (
    catalogue.models.find((one) => one.id === id || `${one.provider}/${one.id}` === id) ??
    prefixed(id, catalogue.providers)
  );
}

/** What an agent program of others is given: a model by the id that it knows, and whose it is. */
export type HarnessModel = { readonly id: string; readonly provider: string };

/**
 * The model of a harness. One that calls a single provider takes whatever id it is given, and has a default of its own ("" here); one that can call any
 * gets one of ours, listed or with its provider's prefix, and the platform's default without one. A provider that is not configured is no error: its key may be
 * named for the harness.
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
      `${model ? "It needs a model of a provider" : `There is no model "${modelId}"`}. Name one for the harness "${type}" in harness.model_id: a listed one, or <provider>/<model>.`,
      { model_id: modelId ?? "" },
    );
  return {
    id: model.id.startsWith(`${model.provider}/`) ? model.id.slice(model.provider.length + 1) : model.id,
    provider: model.provider,
  };
}

/**
 * The model a run gets for what was asked: the default for nothing and for `auto`.
 *
 * Errors: model_unknown · model_disabled, whose text says how to enable it.
 */
export function chooseModel(catalogue: ModelCatalogue, asked: string | undefined): Model {
  const name = asked ?? catalogue.defaultModelId;
  const model = findModel(catalogue, name);
  if (!model) throw invalidArgument("model_unknown", `There is no model "${name}".`, { model_id: name });
  if (model.disabled)
    throw invalidArgument("model_disabled", `The model "${name}" is disabled. ${model.disabled.message}`, {
      model_id: name,
    });
  return model;
}
