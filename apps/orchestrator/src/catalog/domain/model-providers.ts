/** A provider of models, and the names under which a team stores its credentials. */
export type ModelProvider = {
  readonly name: "anthropic" | "openai" | "openai-compatible" | "google";
  readonly title: string;
  readonly publicName: "OPENAI" | "ANTHROPIC" | "GOOGLE" | "UNKNOWN";
  /**
   * Names of the managed secrets (and of the platform's environment variables) that contain the key and the base URL.
   */
  readonly keyName: string;
  readonly urlName: string;
  /** The name, of these two, that must be set; one of MODEL_SECRETS. A self-hosted server may need no key. */
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

/** All providers, in the order in which their models are offered. */
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

/**
 * The provider whose models each third-party harness calls. A harness that is absent here can call any provider,
 * depending on its model.
 */
const HARNESS_PROVIDERS: Readonly<Record<string, ModelProvider["name"]>> = {
  claude: "anthropic",
  codex: "openai",
  gemini: "google",
};
export const harnessProvider = (harness: string): ModelProvider["name"] | undefined =>
  Object.hasOwn(HARNESS_PROVIDERS, harness) ? HARNESS_PROVIDERS[harness] : undefined;

/** Credentials of a provider. They contain a secret: never stored, never logged. */
export type ProviderCredentials = {
  readonly provider: string;
  readonly apiKey: string;
  /** "" = the provider's default. */ readonly baseUrl: string;
  /** Set by the operator, who may use any address. */ readonly operatorSet?: boolean;
};

/** A provider that the operator has configured for every team. */
export type PlatformProvider = ProviderCredentials & {
  /** Ids of models to offer in addition to the built-in list. */ readonly models?: readonly string[];
};

/**
 * Returns the credentials for a run: the team's if it has any, else the platform's. The two are never combined, because
 * the platform's key must not be sent to an address that a team set.
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
  const own = platform.find((configured) => configured.provider === provider.name);
  return own && { provider: own.provider, apiKey: own.apiKey, baseUrl: own.baseUrl, operatorSet: true };
}
