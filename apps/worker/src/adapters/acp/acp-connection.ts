import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { objectAt, textAt } from "../../model/event-fields.ts";
import type { HarnessLink, HarnessSession, HarnessConnection, StartOptions } from "../harness-adapter.ts";
import { JsonRpc, RpcRefused } from "../json-rpc.ts";
import { PLATFORM_SERVER } from "../platform-mcp.ts";
import type { AcpDialect } from "./acp-dialect.ts";
import { AcpUpdates } from "./acp-updates.ts";
import { isReadOnlyCall, permitted } from "./permissions.ts";

const PROTOCOL_VERSION = 1;
/** An undefined method. The response to it is a marker that arrives after all pending updates. */
const MARKER_METHOD = "_millwright/nothing";
const ROUNDS_MAX = 100;

/**
 * Connects to a process that uses version 1 of the Agent Client Protocol. The worker offers it neither files nor
 * terminals: the agent's own tools are limited to the sandbox, whereas the worker's would act from outside.
 */
export function connectAcp(options: StartOptions, { send, emit }: HarnessLink, dialect: AcpDialect): HarnessConnection {
  let sessionId = "";
  /** Whether a turn is running. Updates at other times replay the old session. */
  let isTurn = false;
  let isInterrupted = false;
  let updateCount = 0;
  const updates = new AcpUpdates(emit, dialect);
  const rpc = new JsonRpc({
    send,
    onNotification: (method, params) => {
      updateCount += 1;
      if (method !== "session/update") return false;
      if (!isTurn) return true;
      const isKnown = updates.add(objectAt(params, "update"));
      if (isInterrupted && dialect.cancelsToolsOnly === true) cancelTool();
      return isKnown;
    },
    onUnknown: (line) => emit({ t: "unknown", line }),
    onRequest: (method, params): JsonValue | undefined =>
      method === "session/request_permission"
        ? permitted(params, (call) => !options.isReadOnly || isReadOnlyCall(call, dialect))
        : undefined,
  });

  const cancel = (): void => rpc.notify("session/cancel", { sessionId });
  const cancelTool = (): void => {
    if (updates.isInTool) cancel();
  };

  async function open(): Promise<void> {
    const session = await begin();
    sessionId = session.id;
    emit({ t: "session", session });
  }

  async function begin(): Promise<HarnessSession> {
    await rpc.request("initialize", {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      clientInfo: { name: PLATFORM_SERVER, version: "1.0.0" },
    });
    const place = {
      cwd: options.cwd,
      mcpServers: [{ type: "http", name: PLATFORM_SERVER, url: `${options.gateway}/mcp`, headers: [] }],
    };
    if (options.isResumed && (await isLoaded({ ...place, sessionId: options.sessionId })))
      return { id: options.sessionId, isResumed: true };
    return { id: textAt(await rpc.request("session/new", place), "sessionId"), isResumed: false };
  }

  async function isLoaded(params: JsonObject): Promise<boolean> {
    try {
      await rpc.request("session/load", params);
    } catch (error) {
      if (error instanceof RpcRefused) return false;
      throw error;
    }
    await untilSilent();
    return true;
  }

  /**
   * Waits until the replay of the old session has ended. Some agents continue the replay after they have reported that
   * the session is loaded. The replay has ended when no update arrives between a request and its response.
   */
  async function untilSilent(): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const before = updateCount;
      await rpc.request(MARKER_METHOD, {}).catch(() => undefined);
      if (updateCount === before) return;
    }
  }

  async function prompt(text: string): Promise<void> {
    isTurn = true;
    isInterrupted = false;
    const response = await rpc.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    const counted = dialect.countedIn(response);
    const message = updates.end();
    isTurn = false;
    if (counted) emit({ t: "usage", counted });
    const reason = textAt(response, "stopReason");
    emit(
      reason === "end_turn"
        ? { t: "turn_end", ok: true, message: message || undefined }
        : { t: "turn_end", ok: false, message: STOPS[reason] ?? `It stopped (${reason}).` },
    );
  }

  const fail = (error: unknown): void => {
    updates.end();
    isTurn = false;
    emit({ t: "turn_end", ok: false, message: error instanceof Error ? error.message : "It gave no reason." });
  };

  void open().catch(fail);
  return {
    startTurn: (text) => void prompt(text).catch(fail),
    interrupt: () => {
      isInterrupted = true;
      updates.interrupt();
      if (dialect.cancelsToolsOnly === true) cancelTool();
      else cancel();
    },
    receive: (line) => rpc.receive(line),
  };
}

/** Why a turn ended abnormally. */
const STOPS: Readonly<Record<string, string>> = {
  cancelled: "It was interrupted.",
  max_tokens: "The model's response exceeded its maximum length.",
  max_turn_requests: "It reached its own limit of model requests per turn.",
  refusal: "The model refused to continue.",
};
