import { optional, partsOf, type ValuesOf } from "@millwright/config";
import { isDomainError } from "@millwright/errors";
import { readManagedMcpServers, type ManagedMcpServers } from "./domain/mcp-servers.ts";
import type { PlatformProvider } from "./domain/model-providers.ts";
import type { ModelAliases } from "./domain/models.ts";

/** Parses the operator's MCP servers. The messages of its errors contain no values. */
function parseManagedMcpServers(text: string): ManagedMcpServers {
  try {
    return readManagedMcpServers(text);
  } catch (error) {
    throw isDomainError(error) ? error : new Error("it is not a JSON object");
  }
}

const keyOf = (name: string, provider: string) =>
  optional.secret(
    name,
    `The platform's credentials at ${provider}, for every team. Teams store their own as managed secrets of the same name.`,
  );

const addressOf = (name: string, provider: string) =>
  optional.url(name, `Where ${provider}'s API is, if not at its public address.`);

/** The operator's settings of models, read by the process that starts this service: its own, or standalone. */
export const modelSettings = {
  anthropicKey: keyOf("ANTHROPIC_API_KEY", "Anthropic"),
  anthropicUrl: addressOf("ANTHROPIC_BASE_URL", "Anthropic"),
  openaiKey: keyOf("OPENAI_API_KEY", "OpenAI"),
  openaiUrl: addressOf("OPENAI_BASE_URL", "OpenAI"),
  googleKey: keyOf("GOOGLE_API_KEY", "Google"),
  googleUrl: addressOf("GOOGLE_BASE_URL", "Google"),
  compatibleUrl: optional.url("OPENAI_COMPATIBLE_BASE_URL", "A [server with OpenAI's chat API](../guides/models.md)."),
  compatibleKey: optional.secret("OPENAI_COMPATIBLE_API_KEY", "Its key, if it requires one."),
  compatibleModels: optional.list("OPENAI_COMPATIBLE_MODELS", "Ids of its models to offer.", { default: [] }),
  modelAliases: optional.custom(
    "MILLWRIGHT_MODEL_ALIASES",
    "[Aliases of models](../guides/models.md#configure-a-provider), so that definitions written for other platforms apply unchanged.",
    { allowed: "a comma-separated list of name=model", default: "", parse: parseModelAliases },
  ),
  runTokenLimit: optional.int(
    "MILLWRIGHT_RUN_TOKEN_LIMIT",
    "Maximum number of tokens of all model calls of one run; 0: no limit.",
    { default: 0 },
  ),
  managedMcpServers: optional.custom(
    "MILLWRIGHT_MCP_SERVERS",
    '[MCP servers](../guides/mcp.md) that configurations may reference by id: `{"<id>": {"command": …}}` or `{"<id>": {"url": …}}`.',
    { allowed: "a JSON object of MCP servers", default: "", secret: true, parse: parseManagedMcpServers },
  ),
};

function parseModelAliases(text: string): ModelAliases {
  const aliases = partsOf(text).map((pair) => {
    const [, alias, model] = /^([^\s=]+)\s*=\s*([^\s=]+)$/.exec(pair) ?? [];
    if (alias === undefined || model === undefined) throw new Error(`"${pair}" is not name=model`);
    return [alias, model];
  });
  return Object.fromEntries(aliases);
}

/** Returns the providers that these settings configure. The result contains secrets. */
export function platformProviders(settings: ValuesOf<typeof modelSettings>): PlatformProvider[] {
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
