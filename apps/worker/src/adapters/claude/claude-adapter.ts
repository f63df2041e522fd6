import { randomUUID } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { isAnObject, objectAt, textAt } from "../../model/event-fields.ts";
import type { HarnessAdapter, HarnessEvent, StartOptions } from "../harness-adapter.ts";
import { parsedLine } from "../json-rpc.ts";
import { PLATFORM_SERVER } from "../platform-mcp.ts";

/** The tools that are available while a plan awaits approval. */
const READ_ONLY_TOOLS = "Read";
const RETRIES = "8";
/** The token counters of Claude Code that are published. */
const COUNTERS = [
  "input_tokens",
  "output_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens",
  "cache_creation",
];

/** The adapter of Claude Code, with `stream-json` in both directions. */
export const claudeAdapter: HarnessAdapter = {
  type: "claude",

  argv: ({ program, sessionId, isResumed, model, reasoning, systemFile, isReadOnly, gateway }) => [
    ...[
      program,
      "-p",
      "--input-format",
      "stream-json",
      "--output-format",
      "stream-json",
      "--verbose",
      "--dangerously-skip-permissions",
    ],
    // Files of a repository can make Claude Code run commands at startup, so its project settings are not loaded.
    ...[
      "--setting-sources",
      "user",
      "--strict-mcp-config",
      "--mcp-config",
      JSON.stringify({ mcpServers: { [PLATFORM_SERVER]: { type: "http", url: `${gateway}/mcp` } } }),
    ],
    ...[isResumed ? "--resume" : "--session-id", sessionId, "--append-system-prompt-file", systemFile],
    ...(model === "" ? [] : ["--model", model]),
    ...(reasoning === "" ? [] : ["--effort", reasoning]),
    ...(isReadOnly ? ["--tools", READ_ONLY_TOOLS] : []),
  ],

  env: ({ stateDir, gateway }) => ({
    ...{
      ANTHROPIC_BASE_URL: gateway,
      ANTHROPIC_API_KEY: "added-by-the-gateway",
      CLAUDE_CONFIG_DIR: stateDir,
      CLAUDE_CODE_MAX_RETRIES: RETRIES,
    },
    ...{
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
    },
  }),

  sessionFile,

  connect: (options, { send, emit }) => {
    emit({
      t: "session",
      session: { id: options.sessionId, isResumed: options.isResumed, file: sessionFile(options) },
    });
    return {
      startTurn: (text) => send(line({ type: "user", message: { role: "user", content: [{ type: "text", text }] } })),
      interrupt: () =>
        send(line({ type: "control_request", request_id: randomUUID(), request: { subtype: "interrupt" } })),
      receive: (text) => {
        for (const event of read(text) ?? [{ t: "unknown", line: text } as const]) emit(event);
      },
    };
  },
};

function sessionFile({ stateDir, sessionId, cwd }: Pick<StartOptions, "stateDir" | "sessionId" | "cwd">): string {
  return `${stateDir}/projects/${cwd.replaceAll(/[^A-Za-z0-9]/g, "-")}/${sessionId}.jsonl`;
}

const line = (message: JsonObject): string => `${JSON.stringify(message)}\n`;

/** Lines that are not shown in a run or that repeat others. */
const IGNORED_TYPES = ["control_response", "stream_event", "keep_alive", "rate_limit_event", "tool_progress"];
const IGNORED_SYSTEM_TYPES = ["init", "status", "compact_boundary"];

/** Returns the events of a line; undefined if its type is unknown. */
function read(text: string): readonly HarnessEvent[] | undefined {
  const message = parsedLine(text);
  switch (message?.["type"]) {
    case "assistant":
      return contentOf(message).flatMap(assistantEvents);
    case "user":
      return contentOf(message).flatMap(toolResultEvents);
    case "system":
      if (textAt(message, "subtype") === "api_retry")
        return [
          {
            t: "warning",
            text: `The model did not respond (${JSON.stringify(message["error_status"] ?? message["error"] ?? "unknown")}); the call is retried.`,
          },
        ];
      return IGNORED_SYSTEM_TYPES.includes(textAt(message, "subtype")) ? [] : undefined;
    case "result":
      return ended(message);
    default:
      return IGNORED_TYPES.includes(textAt(message ?? {}, "type")) ? [] : undefined;
  }
}

function contentOf(message: JsonObject): JsonObject[] {
  const { content } = objectAt(message, "message");
  return Array.isArray(content) ? content.filter(isAnObject) : [];
}

function assistantEvents(block: JsonObject): HarnessEvent[] {
  if (block["type"] === "text" && textAt(block, "text") !== "") return [{ t: "message", text: textAt(block, "text") }];
  if (block["type"] === "tool_use")
    return [{ t: "tool_start", id: textAt(block, "id"), name: textAt(block, "name"), input: objectAt(block, "input") }];
  return [];
}

function toolResultEvents(block: JsonObject): HarnessEvent[] {
  if (block["type"] !== "tool_result") return [];
  const { content } = block;
  const parts = Array.isArray(content)
    ? content
        .filter(isAnObject)
        .map((part) => (part["type"] === "text" ? textAt(part, "text") : `[${textAt(part, "type")}]`))
    : [typeof content === "string" ? content : ""];
  return [
    { t: "tool_end", id: textAt(block, "tool_use_id"), ok: block["is_error"] !== true, output: parts.join("\n") },
  ];
}

/**
 * Returns the events of a turn's end. `subtype` is "success" even for calls that failed permanently; `is_error` is
 * reliable. The counters are those of the turn.
 */
function ended(message: JsonObject): HarnessEvent[] {
  const [result, counted] = [textAt(message, "result"), objectAt(message, "usage")];
  const usage: HarnessEvent[] = COUNTERS.some((name) => typeof counted[name] === "number")
    ? [{ t: "usage", counted: Object.fromEntries(Object.entries(counted).filter(([name]) => COUNTERS.includes(name))) }]
    : [];
  return [...usage, { t: "turn_end", ok: message["is_error"] !== true, message: result || undefined }];
}
