import { optional, type Setting } from "@millwright/config";
import { isDomainError } from "@millwright/errors";
import { readManagedMcpServers, type ManagedMcpServers } from "./domain/mcp-servers.ts";
import type { PlatformProvider } from "./domain/model-providers.ts";
import type { ModelAliases } from "./domain/models.ts";

function managedMcpServers(name: string): Setting<ManagedMcpServers> {
  return {
    name,
    read(text) {
      try {
        return { value: readManagedMcpServers(text ?? "") };
      } catch (error) {
        return { fault: isDomainError(error) ? `is wrong: ${error.message}` : "must be a JSON object of MCP servers" };
      }
    },
  };
}

/** Returns the setting of aliases that the operator gives models: `name=model, …`. */
function modelAliases(name: string): Setting<ModelAliases> {
  return {
    name,
    read(text) {
      const pairs = (text ?? "")
        .split(",")
        .map((part) => part.trim())
        .filter((part) => part !== "");
      const aliases = pairs.map((pair) => /^([^\s=]+)\s*=\s*([^\s=]+)$/.exec(pair));
      return aliases.every((alias) => alias !== null)
        ? { value: Object.fromEntries(aliases.map(([, alias, model]) => [alias!, model!])) }
        : { fault: "must be a comma-separated list of name=model" };
    },
  };
}

/** The operator's settings of models, read by the process that starts this service: its own, or standalone. */
export const modelSettings = {
  /** Credentials of model providers for every team. Teams store their own as managed secrets of the same names. */
  anthropicKey: optional.secret("ANTHROPIC_API_KEY"),
  anthropicUrl: optional.url("ANTHROPIC_BASE_URL"),
  openaiKey: optional.secret("OPENAI_API_KEY"),
  openaiUrl: optional.url("OPENAI_BASE_URL"),
  googleKey: optional.secret("GOOGLE_API_KEY"),
  googleUrl: optional.url("GOOGLE_BASE_URL"),
  /** A server with OpenAI's chat API. The key is needed only if the server requires one. */
  compatibleUrl: optional.url("OPENAI_COMPATIBLE_BASE_URL"),
  compatibleKey: optional.secret("OPENAI_COMPATIBLE_API_KEY"),
  /** Ids of the server's models to offer. */
  compatibleModels: optional.list("OPENAI_COMPATIBLE_MODELS", []),
  /** Aliases of models, so that definitions written for other platforms apply unchanged. */
  modelAliases: modelAliases("MILLWRIGHT_MODEL_ALIASES"),
  /** Maximum number of tokens of all model calls of one run; 0 = no limit. */
  runTokenLimit: optional.int("MILLWRIGHT_RUN_TOKEN_LIMIT", 0),
  /**
   * MCP servers that configurations may reference by id, as JSON: `{"<id>": {"command": …}}` or `{"<id>": {"url": …}}`;
   * see docs/guides/mcp.md.
   */
  managedMcpServers: managedMcpServers("MILLWRIGHT_MCP_SERVERS"),
};

type ModelSettings = {
  readonly [K in keyof typeof modelSettings]: (typeof modelSettings)[K] extends Setting<infer T> ? T : never;
};

/** Returns the providers that these settings configure. The result contains secrets. */
export function platformProviders(settings: ModelSettings): PlatformProvider[] {
  const withKey = (provider: string, apiKey: string | undefined, baseUrl: string | undefined): PlatformProvider[] =>
    apiKey ? [{ provider, apiKey, baseUrl: baseUrl ?? "" }] : [];
  const { compatibleUrl, compatibleKey = "", compatibleModels } = settings;
  return [
    ...withKey("anthropic", settings.anthropicKey, settings.anthropicUrl),
    ...withKey("openai", settings.openaiKey, settings.openaiUrl),
    ...withKey("google", settings.googleKey, settings.googleUrl),
    ...(compatibleUrl
      ? [{ provider: "openai-compatible", apiKey: compatibleKey, baseUrl: compatibleUrl, models: compatibleModels }]
      : []),
  ];
}
