/** A source of models, and the names under which a team keeps its access to it. */
export type ModelProvider = {
  readonly name: "anthropic" | "openai" | "openai-compatible" | "google";
  readonly title: string;
  readonly publicName: "OPENAI" | "ANTHROPIC" | "GOOGLE" | "UNKNOWN";
  /** Managed secrets (and environment variables of the platform) with its key and its address. */
  readonly keyName: string;
  readonly urlName: string;
  /** The one of the two that must be there: a server of one's own may need no key. */
  readonly decidingName: string;
};

const withKey = (
  name: ModelProvider["name"],
  title: string,
  publicName: ModelProvider["publicName"],
  prefix: string,
): ModelProvider => ({
  ...{ name, title, publicName },
  ...{ keyName: `${prefix}_API_KEY`, urlName: `${prefix}_BASE_URL`, decidingName: `${prefix}_API_KEY` },
});

/** In the order in which their models are offered. */
export const MODEL_PROVIDERS: readonly ModelProvider[] = [
  withKey("anthropic", "Anthropic", "ANTHROPIC", "ANTHROPIC"),
  withKey("openai", "OpenAI", "OPENAI", "OPENAI"),
  withKey("google", "Google", "GOOGLE", "GOOGLE"),
  {
    ...withKey("openai-compatible", "an OpenAI-compatible server", "UNKNOWN", "OPENAI_COMPATIBLE"),
    decidingName: "OPENAI_COMPATIBLE_BASE_URL",
  },
];

export const providerNamed = (name: string): ModelProvider | undefined =>
  MODEL_PROVIDERS.find((provider) => provider.name === name);

/** Whose models an agent program of others calls; one that is not here can call any, by the model that it is given. */
const HARNESS_PROVIDERS: Readonly<Record<string, ModelProvider["name"]>> = {
  claude: "anthropic",
  codex: "openai",
  gemini: "google",
};
export const harnessProvider = (harness: string): ModelProvider["name"] | undefined =>
  Object.hasOwn(HARNESS_PROVIDERS, harness) ? HARNESS_PROVIDERS[harness] : undefined;

/** Secrets that tell which providers a team has configured. */
export const DECIDING_SECRETS: readonly string[] = MODEL_PROVIDERS.map(({ decidingName }) => decidingName);

/** Access to a provider. Holds a secret: never stored, never logged. */
export type ProviderCredentials = {
  readonly provider: string;
  readonly apiKey: string;
  /** "" = the provider's own. */ readonly baseUrl: string;
  /** Set by the operator, who may name any address. */ readonly operatorSet?: boolean;
};

/** A provider that the operator has configured for every team. */
export type PlatformProvider = ProviderCredentials & {
  /** Ids to offer beside those this release knows. */ readonly models?: readonly string[];
};

/**
 * Access for a run: the team's own as a whole, else the platform's. Never a mixture, for a team that names an address must not be sent the
 * platform's key.
 *
 * @param secrets values of the team's managed secrets by name
 */
export function credentialsFor(
  provider: ModelProvider,
  secrets: Readonly<Record<string, string>>,
  platform: readonly PlatformProvider[],
): ProviderCredentials | undefined {
  if (secrets[provider.decidingName])
    return {
      provider: provider.name,
      apiKey: secrets[provider.keyName] ?? "",
      baseUrl: secrets[provider.urlName] ?? "",
    };
  const own = platform.find((one) => one.provider === provider.name);
  return own && { provider: own.provider, apiKey: own.apiKey, baseUrl: own.baseUrl, operatorSet: true };
}
