import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { omitUndefined } from "@millwright/json";
import { isAnObject, objectAt, textAt } from "../../model/event-fields.ts";
import type { HarnessLink, HarnessSession, HarnessConnection, StartOptions } from "../harness-adapter.ts";
import { JsonRpc } from "../json-rpc.ts";
import { isKnownItem, itemBegan, itemEnded } from "./codex-items.ts";

/** The published names of the counters, by their names in the protocol. */
const COUNTERS: Readonly<Record<string, string>> = {
  ...{
    inputTokens: "input_tokens",
    cachedInputTokens: "cached_input_tokens",
    cacheWriteInputTokens: "cache_write_input_tokens",
  },
  ...{ outputTokens: "output_tokens", reasoningOutputTokens: "reasoning_output_tokens", totalTokens: "total_tokens" },
};

/** Known notifications. Most of them are not shown in a run or repeat others. */
const KNOWN_METHODS =
  /^(?:thread\/.*|turn\/(?:started|completed|diff\/updated|plan\/updated)|item\/(?:started|completed|.*(?:[dD]elta|[pP]rogress|[pP]artAdded))|mcpServer\/.*|account\/.*|remoteControl\/.*|skills\/changed|error|warning|configWarning|deprecationNotice)$/;

const isKnown = (method: string, params: JsonObject): boolean =>
  KNOWN_METHODS.test(method) && (method !== "item/completed" || isKnownItem(objectAt(params, "item")));

/** A process of `codex app-server`: one thread with consecutive turns. */
export class CodexConnection implements HarnessConnection {
  readonly #options: StartOptions;
  readonly #emit: HarnessLink["emit"];
  readonly #rpc: JsonRpc;
  #threadId = "";
  /** The id of the running turn; "" if there is none or its id is not known yet. */
  #turnId = "";
  #isInTurn = false;
  #isToEnd = false;
  #lastText = "";
  /** The token counters of the thread, over all its processes. */
  #total: JsonObject | undefined;

  constructor(options: StartOptions, { send, emit }: HarnessLink) {
    this.#options = options;
    this.#emit = emit;
    this.#rpc = new JsonRpc({
      send,
      onNotification: (method, params) => (this.#handle(method, params), isKnown(method, params)),
      onUnknown: (line) => emit({ t: "unknown", line }),
      onRequest: (method) => this.#asked(method),
    });
    void this.#begin();
  }

  startTurn(text: string): void {
    this.#isInTurn = true;
    this.#isToEnd = false;
    this.#turnId = this.#lastText = "";
    this.#rpc.request("turn/start", { threadId: this.#threadId, input: [{ type: "text", text }] }).then(
      ({ turn }) => this.#started(isAnObject(turn) ? turn : {}),
      (error: unknown) => this.#fail(error),
    );
  }

  interrupt(): void {
    this.#isToEnd = true;
    if (this.#turnId === "") return;
    // The turn may end concurrently; then there is nothing to interrupt.
    this.#rpc.request("turn/interrupt", { threadId: this.#threadId, turnId: this.#turnId }).catch(() => undefined);
  }

  receive(line: string): void {
    this.#rpc.receive(line);
  }

  async #begin(): Promise<void> {
    try {
      const clientInfo = { name: "millwright", title: "Millwright", version: "1.0.0" };
      await this.#rpc.request("initialize", {
        clientInfo,
        capabilities: { experimentalApi: true, requestAttestation: false },
      });
      this.#rpc.notify("initialized");
      this.#emit({ t: "session", session: await this.#thread() });
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * Resumes the thread if the program finds it; otherwise starts a new one. The settings are sent in both cases: a
   * resumed thread would otherwise run with the sandbox, directory and model it was started with, such as the read-only
   * sandbox of the turn that made its plan.
   */
  async #thread(): Promise<HarnessSession> {
    const { sessionId, isResumed } = this.#options;
    const settings = threadSettings(this.#options);
    const resumed = isResumed
      ? await this.#rpc
          .request("thread/resume", { threadId: sessionId, ...settings, excludeTurns: true })
          .catch(() => undefined)
      : undefined;
    const thread = objectAt(resumed ?? (await this.#rpc.request("thread/start", settings)), "thread");
    this.#threadId = textAt(thread, "id");
    const file = textAt(thread, "path");
    return { id: this.#threadId, isResumed: resumed !== undefined, file: file || undefined };
  }

  #handle(method: string, params: JsonObject): void {
    if (method === "thread/tokenUsage/updated") return this.#counted(params);
    if (method === "mcpServer/startupStatus/updated" && params["status"] === "failed")
      return this.#emit({
        t: "warning",
        text: `The tools of ${textAt(params, "name")} did not start: ${textAt(params, "error") || "no reason given"}.`,
      });
    // belongs to another thread that the program has started
    if (!this.#isInTurn || textAt(params, "threadId") !== this.#threadId) return;
    if (method === "turn/started") return this.#started(objectAt(params, "turn"));
    // belongs to an ended turn
    if ((textAt(params, "turnId") || textAt(objectAt(params, "turn"), "id")) !== this.#turnId) return;
    const item = objectAt(params, "item");
    switch (method) {
      case "item/started":
        return itemBegan(item).forEach(this.#emit);
      case "item/completed":
        if (item["type"] === "agentMessage") this.#lastText = textAt(item, "text");
        return itemEnded(item).forEach(this.#emit);
      case "error":
        if (params["willRetry"] === true)
          this.#emit({
            t: "warning",
            text: `The model did not respond (${messageOf(objectAt(params, "error"))}); the call is retried.`,
          });
        return;
      case "turn/completed":
        return void this.#ended(objectAt(params, "turn"));
      default:
    }
  }

  #started(turn: JsonObject): void {
    if (!this.#isInTurn || this.#turnId !== "") return;
    this.#turnId = textAt(turn, "id");
    if (this.#isToEnd) this.interrupt();
  }

  async #ended(turn: JsonObject): Promise<void> {
    const status = textAt(turn, "status");
    // Commands outlive an interrupted turn unless they are ended explicitly.
    if (status === "interrupted")
      await this.#rpc.request("thread/backgroundTerminals/clean", { threadId: this.#threadId }).catch(() => undefined);
    this.#isInTurn = false;
    const message = status === "failed" ? messageOf(objectAt(turn, "error")) : this.#lastText;
    this.#emit({ t: "turn_end", ok: status === "completed", message: message || undefined });
  }

  #fail(error: unknown): void {
    this.#isInTurn = false;
    this.#emit({ t: "turn_end", ok: false, message: error instanceof Error ? error.message : "It gave no reason." });
  }

  /**
   * Emits the token counts of the turn, as the difference of the thread's totals. A resumed thread first reports its
   * earlier totals.
   */
  #counted(params: JsonObject): void {
    if (textAt(params, "threadId") !== this.#threadId && this.#threadId !== "") return;
    const usage = objectAt(params, "tokenUsage");
    const [total, before] = [objectAt(usage, "total"), this.#total];
    this.#total = total;
    if (!this.#isInTurn || textAt(params, "turnId") !== this.#turnId) return;
    const since = before
      ? Object.fromEntries(
          Object.entries(total).flatMap(([name, count]) =>
            typeof count === "number" ? [[name, count - numberAt(before, name)]] : [],
          ),
        )
      : objectAt(usage, "last");
    const counted = Object.fromEntries(
      Object.entries(COUNTERS).flatMap(([name, published]) =>
        typeof since[name] === "number" ? [[published, since[name]]] : [],
      ),
    );
    if (Object.keys(counted).length > 0) this.#emit({ t: "usage", counted });
  }

  /**
   * Responds to a request of the program. No user can be asked: the sandbox is the security boundary, and questions to
   * users go through the platform's tool.
   */
  #asked(method: string): JsonValue | undefined {
    const { isReadOnly } = this.#options;
    switch (method) {
      case "item/commandExecution/requestApproval":
      case "item/fileChange/requestApproval":
        return { decision: isReadOnly ? "decline" : "accept" };
      case "item/tool/requestUserInput":
        return { answers: {} };
      case "mcpServer/elicitation/request":
        return { action: "decline", content: null, _meta: null };
      default:
        return undefined;
    }
  }
}

/** Returns the settings of a thread, which are sent with every start and every resumption. */
const threadSettings = ({ cwd, instructions, isReadOnly, model, reasoning }: StartOptions): JsonObject =>
  omitUndefined({
    cwd,
    approvalPolicy: "never",
    sandbox: sandboxMode(isReadOnly),
    developerInstructions: instructions,
    model: model || undefined,
    config: reasoning === "" ? undefined : { model_reasoning_effort: reasoning },
  });

/**
 * Returns the mode of Codex's own sandbox. The sandbox around the program is the security boundary, so Codex's own is
 * off, except that it is read-only while a plan awaits approval.
 */
export const sandboxMode = (isReadOnly: boolean): string => (isReadOnly ? "read-only" : "danger-full-access");

const numberAt = (object: JsonObject, key: string): number => (typeof object[key] === "number" ? object[key] : 0);

function messageOf(error: JsonObject): string {
  const [message, details] = [textAt(error, "message"), textAt(error, "additionalDetails")];
  return [message, details].filter((text) => text !== "").join(": ") || "no reason given";
}
