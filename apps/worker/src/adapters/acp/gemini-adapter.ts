import { omitUndefined } from "@millwright/json";
import { objectAt } from "../../model/event-fields.ts";
import type { HarnessAdapter, StartOptions } from "../harness-adapter.ts";
import { programArgv } from "../harness-program.ts";
import { PLATFORM_SERVER } from "../platform-mcp.ts";
import type { AcpDialect } from "./acp-dialect.ts";
import { connectAcp } from "./acp-connection.ts";
import { geminiGuard } from "./gemini-guard.ts";

/** The directory in the workspace where Gemini CLI reads its user settings. */
const STATE = ".harness/gemini/.gemini";
/** Tools that are not offered while a plan awaits approval. Permission for any other change is requested and denied. */
const CHANGING_TOOLS = ["run_shell_command", "write_file", "replace"];
const PLATFORM_TITLE = new RegExp(`^(.+) \\(${PLATFORM_SERVER} MCP Server\\)$`);

/** Gemini CLI confuses a tool of this name with one of its own, which is unavailable in this mode. */
const TOOL_NAMES = { ask_user: "ask_people" };

/**
 * A shell script that renames the session file before it starts the program. The file name contains the minute of the
 * session's start, and loading a session rewrites the file, which deletes it within the same minute. The new name
 * cannot equal any minute.
 */
const MOVE_SESSION =
  'for file in "$1"/.gemini/tmp/*/chats/session-2*-"$2".jsonl; do kept="${file%/*}/session-0-$2.jsonl"; [ -f "$file" ] && [ ! -e "$kept" ] && mv "$file" "$kept"; done; shift 2; exec "$@"';

const DIALECT: AcpDialect = {
  cancelsToolsOnly: true,
  // A call's id begins with the name of its tool. Tools of MCP servers are identified by their titles.
  toolOf: ({ id, title }) => {
    const platformTool = PLATFORM_TITLE.exec(title)?.[1];
    return platformTool === undefined ? (/^(.+?)__/.exec(id)?.[1] ?? "") : `mcp__${PLATFORM_SERVER}__${platformTool}`;
  },
  countedIn: (response) => {
    const { input_tokens, output_tokens } = objectAt(objectAt(objectAt(response, "_meta"), "quota"), "token_count");
    const counted = omitUndefined({
      input_tokens: typeof input_tokens === "number" ? input_tokens : undefined,
      output_tokens: typeof output_tokens === "number" ? output_tokens : undefined,
    });
    return Object.keys(counted).length === 0 ? undefined : counted;
  },
};

/** The adapter of Gemini CLI, which uses the Agent Client Protocol. */
export const geminiAdapter: HarnessAdapter = {
  type: "gemini",

  argv: ({ program, model, stateDir, sessionId, isResumed, isReadOnly }) => [
    ...(isResumed ? ["/bin/sh", "-c", MOVE_SESSION, "sh", stateDir, sessionId.slice(0, 8)] : []),
    ...[...programArgv(program, geminiGuard(stateDir)), "--acp", "--approval-mode", isReadOnly ? "default" : "yolo"],
    ...(model === "" ? [] : ["-m", model]),
  ],

  env: ({ stateDir, gateway }) => ({
    ...{ GOOGLE_GEMINI_BASE_URL: gateway, GEMINI_API_KEY: "added-by-the-gateway", GEMINI_CLI_HOME: stateDir },
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
  tools: isReadOnly ? { exclude: CHANGING_TOOLS } : undefined,
});
