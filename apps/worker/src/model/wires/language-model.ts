import type { worker } from "@millwright/contracts";
import type { LanguageModel, SystemModelMessage } from "ai";

type Access = Pick<worker.ProviderCredentials, "apiKey" | "baseUrl"> & {
  /** Absent: no address is blocked. */ readonly fetch?: typeof fetch | undefined;
};
type ProviderOptions = NonNullable<SystemModelMessage["providerOptions"]>;

/**
 * The properties in which the provider protocols differ. Libraries are imported at first use, so that a worker without
 * AI runs does not load them.
 */
export type Wire = {
  /** The default context window of its models, in tokens. */
  readonly contextTokens: number;
  readonly open: (access: Access, modelId: string) => Promise<Exclude<LanguageModel, string>>;
  /** Set if its providers can be required to call a tool. Servers of the compatible protocol differ in this respect. */
  readonly canRequireTools?: true;
  /** Options of every call. */
  readonly options?: ProviderOptions;
  /** Marks the message up to which the provider caches the prompt, for providers that require an explicit mark. */
  readonly cacheMark?: ProviderOptions;
};

const WIRES: Readonly<Record<string, Wire>> = {
  anthropic: {
    contextTokens: 200_000,
    canRequireTools: true,
    open: async ({ apiKey, baseUrl, fetch }, modelId) =>
      (await import("@ai-sdk/anthropic")).createAnthropic({
        apiKey,
        fetch,
        baseURL: versioned(baseUrl || "https://api.anthropic.com"),
      })(modelId),
    cacheMark: { anthropic: { cacheControl: { type: "ephemeral" } } },
  },
  openai: {
    contextTokens: 272_000,
    canRequireTools: true,
    open: async ({ apiKey, baseUrl, fetch }, modelId) =>
      (await import("@ai-sdk/openai"))
        .createOpenAI({ apiKey, fetch, baseURL: baseUrl || "https://api.openai.com/v1" })
        .responses(modelId),
    options: { openai: { store: false } }, // the conversation is stored only by this platform
  },
  "openai-compatible": {
    contextTokens: 128_000,
    open: async ({ apiKey, baseUrl, fetch }, modelId) => {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({
        name: "compatible",
        fetch,
        baseURL: baseUrl,
        includeUsage: true,
        apiKey: apiKey || undefined,
      }).chatModel(modelId);
    },
  },
  google: {
    contextTokens: 1_000_000,
    canRequireTools: true,
    open: async ({ apiKey, baseUrl, fetch }, modelId) =>
      (await import("@ai-sdk/google")).createGoogleGenerativeAI({
        apiKey,
        fetch,
        baseURL: baseUrl || "https://generativelanguage.googleapis.com/v1beta",
      })(modelId),
  },
};

export const wireNamed = (provider: string): Wire | undefined =>
  Object.hasOwn(WIRES, provider) ? WIRES[provider] : undefined;

/** Appends the version to Anthropic's base URL, because users usually configure the URL without it. */
const versioned = (url: string): string => (/\/v\d+\/?$/.test(url) ? url : `${url.replace(/\/+$/, "")}/v1`);
