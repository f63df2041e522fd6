import type { JsonObject } from "@bufbuild/protobuf";
import type { HarnessAdapter, StartOptions } from "../harness-adapter.ts";
import { programArgv } from "../harness-program.ts";
import { PLATFORM_SERVER } from "../platform-mcp.ts";
import type { AcpDialect } from "./acp-dialect.ts";
import { connectAcp } from "./acp-connection.ts";

/** The name of the gateway among opencode's providers. */
const PROVIDER = "millwright";
/** The path of each provider's API on the gateway, and the package that opencode uses for it. */
const WIRES: Readonly<Record<string, readonly [npm: string, path: string]>> = {
  anthropic: ["@ai-sdk/anthropic", "/v1"],
  openai: ["@ai-sdk/openai", "/v1"],
  google: ["@ai-sdk/google", "/v1beta"],
  "openai-compatible": ["@ai-sdk/openai-compatible", "/v1"],
};
const READ_ONLY_TOOLS = ["read", "list", "glob", "grep"];

const DIALECT: AcpDialect = {
  // A call's first title is the name of its tool.
  toolOf: ({ title }) =>
    title.startsWith(`${PLATFORM_SERVER}_`)
      ? `mcp__${PLATFORM_SERVER}__${title.slice(PLATFORM_SERVER.length + 1)}`
      : /^[a-z_]+$/.test(title)
        ? title
        : "",
  // opencode reports only the tokens of a turn's last step.
  countedIn: () => undefined,
};

/**
 * The adapter of opencode, which uses the Agent Client Protocol. It is not one of the harnesses in the public
 * specification.
 */
export const opencodeAdapter: HarnessAdapter = {
  type: "opencode",

  argv: ({ program }) => [...programArgv(program), "acp"],

  // No opencode configuration of a repository is loaded, because its plugins and servers would run at startup.
  env: ({ stateDir }) => ({
    ...{
      OPENCODE_CONFIG: `${stateDir}/config.json`,
      XDG_DATA_HOME: stateDir,
      OPENCODE_DISABLE_PROJECT_CONFIG: "1",
      OPENCODE_PURE: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
    },
    ...{
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_SHARE: "1",
    },
  }),

  files: (options) => ({ ".harness/opencode/config.json": JSON.stringify(config(options)) }),

  connect: (options, link) => connectAcp(options, link, DIALECT),
};

function config({ provider, model, reasoning, systemFile, isReadOnly, gateway }: StartOptions): JsonObject {
  const [npm, path] = WIRES[provider] ?? WIRES["openai-compatible"]!;
  const options: JsonObject = reasoning === "" ? {} : { options: { reasoningEffort: reasoning } };
  const readOnly = {
    "*": "deny",
    [`${PLATFORM_SERVER}_*`]: "allow",
    ...Object.fromEntries(READ_ONLY_TOOLS.map((tool) => [tool, "allow"])),
  };
  return {
    ...{ model: `${PROVIDER}/${model}`, small_model: `${PROVIDER}/${model}`, enabled_providers: [PROVIDER] },
    provider: {
      [PROVIDER]: {
        npm,
        name: "Millwright",
        options: { baseURL: gateway + path, apiKey: "added-by-the-gateway" },
        models: { [model]: { name: model, ...options } },
      },
    },
    ...{ instructions: [systemFile], permission: isReadOnly ? readOnly : "allow" },
    ...{ autoupdate: false, share: "disabled", snapshot: false },
  };
}
