import type { worker } from "@millwright/contracts";
import type { LanguageModel, SystemModelMessage } from "ai";

type Access = Pick<worker.ProviderCredentials, "apiKey" | "baseUrl"> & {
  /** Absent: anything is reached. */ readonly fetch?: typeof fetch | undefined;
};
type ProviderOptions = NonNullable<SystemModelMessage["providerOptions"]>;

/** What differs between the wires. Libraries are loaded when they are first used: a worker that runs no AI does not carry them. */
export type Wire = {
  /** Tokens that its models can read at once, where nobody says otherwise. */
  readonly contextTokens: number;
  readonly open: (access: Access, modelId: string) => Promise<Exclude<LanguageModel, string>>;
  /** Its providers can be asked for an answer that calls a tool. Servers of the compatible wire differ in that. */
  readonly canRequireTools?: true;
  /** Options of every call. */
  readonly options?: ProviderOptions;
  /** Marks a message as one up to which the provider shall cache the prompt, where it must be told. */
  readonly cacheMark?: ProviderOptions;
};

const WIRES: Readonly<Record<string, Wire>> = {
  anthropic: {
    contextTokens: 200_000,
    canRequireTools: true,
    open: async ({ apiKey, baseUrl, fetch }, modelId) =>
      (await import("@ai-sdk/anthropic")).createAnthropic({
        apiKey,
        ...by(fetch),
        baseURL: versioned(baseUrl || "https://api.anthropic.com"),
      })(modelId),
    cacheMark: { anthropic: { cacheControl: { type: "ephemeral" } } },
  },
  openai: {
    contextTokens: 272_000,
    canRequireTools: true,
    open: async ({ apiKey, baseUrl, fetch }, modelId) =>
      (await import("@ai-sdk/openai"))
        .createOpenAI({ apiKey, ...by(fetch), baseURL: baseUrl || "https://api.openai.com/v1" })
        .responses(modelId),
    options: { openai: { store: false } }, // the conversation is kept here, and nowhere else
  },
  "openai-compatible": {
    contextTokens: 128_000,
    open: async ({ apiKey, baseUrl, fetch }, modelId) => {
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({
        name: "compatible",
        ...by(fetch),
        baseURL: baseUrl,
        includeUsage: true,
        ...(apiKey === "" ? {} : { apiKey }),
      }).chatModel(modelId);
    },
  },
  google: {
    contextTokens: 1_000_000,
    canRequireTools: true,
    open: async ({ apiKey, baseUrl, fetch }, modelId) =>
      (await import("@ai-sdk/google")).createGoogleGenerativeAI({
        apiKey,
        ...by(fetch),
        baseURL: baseUrl || "https://generativelanguage.googleapis.com/v1beta",
      })(modelId),
  },
};

const by = (fetchImpl: typeof fetch | undefined): { fetch?: typeof fetch } => (fetchImpl ? { fetch: fetchImpl } : {});

export const wireNamed = (provider: string): Wire | undefined =>
  Object.hasOwn(WIRES, provider) ? WIRES[provider] : undefined;

/** The address people give for Anthropic is the one without the version. */
const versioned = (url: string): string => (/\/v\d+\/?$/.test(url) ? url : `${url.replace(/\/+$/, "")}/v1`);
