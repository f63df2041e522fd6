import { objectAt } from "../../model/event-fields.ts";
import type { HarnessAdapter, StartOptions } from "../harness-adapter.ts";
import { programArgv } from "../harness-program.ts";
import { PLATFORM_SERVER } from "../platform-mcp.ts";
import type { AcpDialect } from "./acp-dialect.ts";
import { connectAcp } from "./acp-connection.ts";
import { geminiGuard } from "./gemini-guard.ts";

/** Where it searches for its user's settings, in the workspace. */
const STATE = ".harness/gemini/.gemini";
/** Not offered while a plan awaits approval; permission for any other change is requested, and denied. */
const CHANGING_TOOLS = ["run_shell_command", "write_file", "replace"];
const PLATFORM_TITLE = new RegExp(`^(.+) \\(${PLATFORM_SERVER} MCP Server\\)$`);

/** It confuses a tool of this name with one of its own, which is unavailable in this mode. */
const TOOL_NAMES = { ask_user: "ask_people" };

/**
 * The name of a session file contains the minute of its start, and loading a session rewrites the file, which deletes
 * it within the same minute. So it is first renamed to a name that no minute has.
 */
const MOVE_SESSION =
  'for file in "$1"/.gemini/tmp/*/chats/session-2*-"$2".jsonl; do kept="${file%/*}/session-0-$2.jsonl"; [ -f "$file" ] && [ ! -e "$kept" ] && mv "$file" "$kept"; done; shift 2; exec "$@"';

const DIALECT: AcpDialect = {
  cancelsToolsOnly: true,
  // A call's id begins with its tool's name; tools of servers are better known by their titles.
  toolOf: ({ id, title }) => {
    const platformTool = PLATFORM_TITLE.exec(title)?.[1];
    return platformTool === undefined ? (/^(.+?)__/.exec(id)?.[1] ?? "") : `mcp__${PLATFORM_SERVER}__${platformTool}`;
  },
  countedIn: (answer) => {
    const { input_tokens, output_tokens } = objectAt(objectAt(objectAt(answer, "_meta"), "quota"), "token_count");
    const counted = {
      ...(typeof input_tokens === "number" ? { input_tokens } : {}),
      ...(typeof output_tokens === "number" ? { output_tokens } : {}),
    };
    return Object.keys(counted).length === 0 ? undefined : counted;
  },
};

/** Gemini CLI, by the Agent Client Protocol (execution design §3.5). */
export const geminiAdapter: HarnessAdapter = {
  type: "gemini",

  argv: ({ program, model, stateDir, sessionId, isResumed, isReadOnly }) => [
    ...(isResumed ? ["/bin/sh", "-c", MOVE_SESSION, "sh", stateDir, sessionId.slice(0, 8)] : []),
    ...[...programArgv(program, geminiGuard(stateDir)), "--acp", "--approval-mode", isReadOnly ? "default" : "yolo"],
    ...(model === "" ? [] : ["-m", model]),
  ],

  env: ({ stateDir, gateway }) => ({
    ...{ GOOGLE_GEMINI_BASE_URL: gateway, GEMINI_API_KEY: "held-by-the-worker", GEMINI_CLI_HOME: stateDir },
    ...{ GEMINI_CLI_TRUST_WORKSPACE: "true", GEMINI_CLI_NO_RELAUNCH: "true" },
  }),

  files: (options) => ({
    [`${STATE}/settings.json`]: JSON.stringify(settings(options)),
    [`${STATE}/GEMINI.md`]: Object.entries(TOOL_NAMES).reduce(
      (text, [ours, theirs]) => text.replaceAll(ours, theirs),
      options.instructions,
    ),
  }),

  toolNames: TOOL_NAMES,

  endsByModel: true,

  connect: (options, link) => connectAcp(options, link, DIALECT),
};

const settings = ({ isReadOnly }: StartOptions) => ({
  security: { auth: { selectedType: "gemini-api-key" } },
  general: { enableAutoUpdate: false, sessionRetention: { enabled: false } },
  privacy: { usageStatisticsEnabled: false },
  telemetry: { enabled: false },
  hooksConfig: { enabled: false },
  mcp: { allowed: [PLATFORM_SERVER] },
  ...(isReadOnly ? { tools: { exclude: CHANGING_TOOLS } } : {}),
});
