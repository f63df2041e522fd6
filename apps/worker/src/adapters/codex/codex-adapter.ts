import type { HarnessAdapter, StartOptions } from "../harness-adapter.ts";
import { PLATFORM_SERVER } from "../platform-mcp.ts";
import { CodexConnection, sandboxMode } from "./codex-connection.ts";

const PROVIDER = "millwright";
/** Generous, because opening a pull request may take long. */
const TOOL_TIMEOUT_SECONDS = 900;
const STARTUP_TIMEOUT_SECONDS = 60;
/** Features that connect to services other than the model, or that run code of others. */
const FEATURES_OFF = ["apps", "plugins", "hooks", "goals", "memories", "shell_snapshot", "image_generation"];

/** The adapter of Codex, with its `app-server`. */
export const codexAdapter: HarnessAdapter = {
  type: "codex",
  argv: (options) => [options.program, "app-server", ...settings(options).flatMap((setting) => ["-c", setting])],
  env: ({ stateDir }) => ({ CODEX_HOME: stateDir }),
  directories: ({ stateDir, home }) => [stateDir, databases(home)],
  readsThroughPlatform: true,
  connect: (options, link) => new CodexConnection(options, link),
};

const databases = (home: string): string => `${home}/.codex-databases`;

/**
 * Returns the complete configuration. The sandbox around the program is the security boundary, so Codex's own sandbox
 * is off. Codex configuration of a repository is not loaded.
 */
function settings({ gateway, cwd, model, reasoning, isReadOnly, home }: StartOptions): string[] {
  return [
    `model_provider=${toml(PROVIDER)}`,
    `model_providers.${PROVIDER}={name="Millwright",base_url=${toml(`${gateway}/v1`)},wire_api="responses",supports_websockets=false}`,
    `mcp_servers.${PLATFORM_SERVER}={url=${toml(`${gateway}/mcp`)},tool_timeout_sec=${TOOL_TIMEOUT_SECONDS},default_tools_approval_mode="approve",startup_timeout_sec=${STARTUP_TIMEOUT_SECONDS}}`,
    `projects={${toml(cwd)}={trust_level="untrusted"}}`,
    `approval_policy="never"`,
    `sandbox_mode=${toml(sandboxMode(isReadOnly))}`,
    `web_search="disabled"`,
    `project_doc_max_bytes=0`, // the platform's instructions contain the AGENTS.md of each repository
    `check_for_update_on_startup=false`,
    `sqlite_home=${toml(databases(home))}`,
    ...FEATURES_OFF.map((name) => `features.${name}=false`),
    ...(isReadOnly ? ["features.shell_tool=false"] : []),
    ...(model === "" ? [] : [`model=${toml(model)}`]),
    ...(reasoning === "" ? [] : [`model_reasoning_effort=${toml(reasoning)}`]),
  ];
}

/** Returns a TOML string; JSON escapes are valid in TOML. */
const toml = (text: string): string => JSON.stringify(text);
