import type { JsonObject } from "@bufbuild/protobuf";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { Checkpoints } from "../workspace/checkpoints.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Messages } from "../conversation/messages.ts";
import { isAllowed, runTool, type Ending } from "../tools/run-tool.ts";
import type { TokenBudget } from "../conversation/token-budget.ts";
import type { Tool, ToolContext, TurnEnd } from "../tools/tool.ts";
import { awaitsPlan } from "../tools/tools.ts";
import type { RunFailure } from "../model/model-provider.ts";
import type { HarnessAdapter, HarnessEvent, HarnessSession } from "./harness-adapter.ts";
import { HarnessProcess } from "./harness-process.ts";
import { earlierMessages, messageText } from "./harness-prompt.ts";
import { HarnessRecord } from "./harness-record.ts";
import type { ModelGateway } from "./model-gateway.ts";
import { prepareHarness } from "./prepare-harness.ts";

/** How long a harness may take to end its turn before it is killed. */
const INTERRUPT_GRACE_MS = 10_000;
/** The maximum number of restarts of a harness that exits by itself, per execution. */
const CRASHES_MAX = 1;
const LONGEST_MS = 2 ** 31 - 1;
/** The platform's tools for a harness without a read-only mode while it plans. */
export const READ_ONLY_TOOLS: readonly string[] = ["read_file", "list", "search"];
const CONTINUE = "[From the platform] You were interrupted. Check where you are, then continue.";

/**
 * A third-party agent program of one execution: its protocol adapter, the program in the sandbox, and its model
 * gateway.
 */
export type Harness = { readonly adapter: HarnessAdapter; readonly program: string; readonly gateway: ModelGateway };

export type HarnessTurnsDeps = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly messages: Messages;
  readonly harness: Harness;
  /** Tools of the platform and of the run's MCP servers. The harness has its own file and shell tools. */
  readonly tools: readonly Tool[];
  readonly context: Omit<ToolContext, "callId" | "signal">;
  readonly notices: readonly string[];
  readonly checkpoints: Checkpoints;
  readonly budget: TokenBudget;
};

/** Why a turn is ended early: a new message, or the turn's outcome. */
type Intent = "message" | TurnEnd;

/** How a turn ended by itself, or that the process ended. */
type TurnEvent = (HarnessEvent & { readonly t: "turn_end" }) | { readonly died: string };

/**
 * Runs the turns of a harness. The outcome is determined by the protocol's end of a turn and by the worker's own
 * intent, never by an exit code.
 */
export class HarnessTurns {
  readonly #deps: HarnessTurnsDeps;
  readonly #record: HarnessRecord;
  #process: { readonly process: HarnessProcess; readonly isReadOnly: boolean } | undefined;
  #session: HarnessSession | undefined;
  #deliveredCount: number;
  #mode = "";
  #crashes = 0;
  #hasSession = false;
  #intent: Intent | undefined;
  #turn: ((end: TurnEvent) => void) | undefined;
  /** Whether the harness has received the turn's input. */
  #isTurnStarted = false;
  #force: NodeJS.Timeout | undefined;

  constructor(deps: HarnessTurnsDeps) {
    this.#deps = deps;
    this.#deliveredCount = deps.conversation.events.length; // earlier messages are in the session
    const { adapter, gateway } = deps.harness;
    this.#record = new HarnessRecord({ ...deps, harness: adapter.type });
    gateway.onFailure = (failure) => this.#end({ kind: "failed", failure });
    const theirs = Object.entries(adapter.toolNames ?? {});
    gateway.platformTools = {
      tools: () =>
        deps.tools
          .filter((tool) => this.#offers(tool))
          .map((tool) => ({ ...tool, name: theirs.find(([name]) => name === tool.name)?.[1] ?? tool.name })),
      run: (name, input, malformed) =>
        this.#runTool(theirs.find(([, known]) => known === name)?.[0] ?? name, input, malformed),
    };
  }

  /** Runs one turn, from new messages to its end. Throws the abort reason of the execution or `SandboxGone`. */
  async run(interrupted: AbortSignal): Promise<TurnEnd> {
    const { ctx, messages, budget } = this.#deps;
    for (let text = ""; ;) {
      this.#mode = await messages.take();
      ctx.signal.throwIfAborted();
      if (interrupted.aborted) return { kind: "interrupted" };
      const failure = budget.exceeded();
      if (failure) return { kind: "failed", failure };
      text = this.#newMessages() || text || CONTINUE;
      const end = await this.#oneTurn(text, interrupted);
      if (end === "again") text = CONTINUE;
      else if (end !== "message") return end;
    }
  }

  /** The session of its last process. */
  get session(): HarnessSession | undefined {
    return this.#session;
  }

  /** Stops the harness gracefully; its session remains. Never rejects. */
  async close(): Promise<void> {
    await this.#process?.process.stop();
    this.#process = undefined;
    await this.#deps.harness.gateway.settled();
  }

  async #oneTurn(text: string, interrupted: AbortSignal): Promise<TurnEnd | "message" | "again"> {
    const { ctx, harness, messages } = this.#deps;
    this.#intent = undefined;
    this.#isTurnStarted = false;
    harness.gateway.release();
    this.#record.beginTurn();
    const ended = new Promise<TurnEvent>((resolve) => (this.#turn = resolve));
    const turnEnded = new AbortController();
    const aborted = new Promise<never>((_resolve, reject) =>
      ctx.signal.addEventListener("abort", () => reject(ctx.signal.reason as Error), {
        once: true,
        signal: turnEnded.signal,
      }),
    );
    aborted.catch(() => undefined);
    interrupted.addEventListener("abort", () => this.#end({ kind: "interrupted" }), { signal: turnEnded.signal });
    let end: TurnEvent | undefined;
    try {
      const process = await this.#ensure();
      const session = await Promise.race([process.session, ended, aborted]);
      if (!("id" in session)) return this.#judge((end = session));
      this.#session = session;
      this.#record.begin(session);
      this.#hasSession ||= session.isResumed;
      process.connection.startTurn(this.#opening(text));
      this.#isTurnStarted = true;
      if (this.#intent !== undefined) process.connection.interrupt();
      else if (interrupted.aborted) this.#end({ kind: "interrupted" });
      void this.#watchForMessages(messages, turnEnded.signal);
      return this.#judge((end = await Promise.race([ended, aborted])));
    } finally {
      turnEnded.abort();
      clearTimeout(this.#force);
      this.#turn = undefined;
      this.#record.endTurn({ hasEnded: end !== undefined && !("died" in end), ...harness.gateway.answeredSteps });
    }
  }

  #judge(end: TurnEvent): TurnEnd | "message" | "again" {
    if ("died" in end) this.#process = undefined;
    if (this.#intent !== undefined) return this.#intent;
    const { adapter, gateway } = this.#deps.harness;
    const { refusal } = gateway; // the program has ended its turn after the refusal
    if (refusal) return { kind: "failed", failure: refusal };
    if (!("died" in end))
      return end.ok
        ? { kind: "done", message: end.message }
        : { kind: "failed", failure: turnFailed(adapter.type, end.message) };
    if ((this.#crashes += 1) > CRASHES_MAX) return { kind: "failed", failure: programDied(adapter.type, end.died) };
    this.#deps.conversation.record("warning", {
      text: `The agent's program ended during its turn and is restarted. ${end.died}`,
    });
    return "again";
  }

  /**
   * Requests the end of the turn. The first reason is used, except that an outcome takes precedence over a new message.
   */
  #end(intent: Intent): void {
    if (this.#intent !== undefined && this.#intent !== "message") return;
    const isEnding = this.#intent !== undefined;
    const { adapter, gateway } = this.#deps.harness;
    this.#intent = intent;
    const running = this.#process?.process;
    if (isEnding || !running || !this.#turn) return;
    if (adapter.endsByModel === true) gateway.endTurn();
    if (this.#isTurnStarted) running.connection.interrupt();
    this.#force = setTimeout(() => void running.stop(), INTERRUPT_GRACE_MS);
  }

  async #watchForMessages({ inbox }: Messages, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wakeup = await inbox.idle(LONGEST_MS, signal).catch(() => "ended");
      if (wakeup === "message" && !signal.aborted) return this.#end("message");
      if (wakeup === "ended") return;
    }
  }

  /** Returns the messages that the harness has not received. */
  #newMessages(): string {
    const { events } = this.#deps.conversation;
    const messages = events
      .slice(this.#deliveredCount)
      .filter(({ kind, payload }) => kind === "message" && payload["role"] === "user");
    this.#deliveredCount = events.length;
    return messages.map(({ payload }) => messageText(payload)).join("\n\n");
  }

  /** Returns the text that starts a turn. In a new session, it begins with the earlier messages. */
  #opening(text: string): string {
    if (this.#hasSession) return text;
    this.#hasSession = true;
    const { conversation } = this.#deps;
    const before = [...conversation.earlier, ...conversation.events].filter(({ kind }) => kind === "message");
    const newest = before.findLastIndex(({ payload }) => payload["role"] === "user");
    return [earlierMessages(before.slice(0, Math.max(0, newest))), text].filter((part) => part !== "").join("\n\n");
  }

  async #ensure(): Promise<HarnessProcess> {
    const isReadOnly = awaitsPlan(this.#mode);
    if (this.#process?.isReadOnly === isReadOnly) return this.#process.process;
    await this.close();
    const { harness, context } = this.#deps;
    const { adapter } = harness;
    const { sandbox, base } = context.workspace;
    const options = await prepareHarness(this.#deps, isReadOnly);
    this.#hasSession = false;
    const process: HarnessProcess = new HarnessProcess({
      program: sandbox.open(adapter.argv(options), { cwd: base, env: { ...adapter.env(options) } }),
      connect: (link) => adapter.connect(options, link),
      onEvent: (event) => this.#onEvent(event),
      onEnd: (why) => {
        if (this.#process?.process === process) this.#turn?.({ died: why });
      },
    });
    this.#process = { process, isReadOnly };
    return process;
  }

  #offers(tool: Tool): boolean {
    return isAllowed(tool, this.#mode) && (awaitsPlan(this.#mode) || !READ_ONLY_TOOLS.includes(tool.name));
  }

  #onEvent(event: Exclude<HarnessEvent, { t: "session" }>): void {
    if (event.t === "turn_end") this.#turn?.(event);
    else this.#record.add(event, this.#intent !== undefined);
  }

  async #runTool(name: string, input: JsonObject, malformed?: string): Promise<Ending> {
    const { ctx, tools, context, checkpoints, harness } = this.#deps;
    const ending = await runTool(
      { callId: this.#record.nextId(), name, input, malformed },
      { tools, mode: this.#mode, clock: ctx.clock, context: { ...context, signal: ctx.signal } },
    );
    checkpoints.note(name === "pull_request" ? "always" : "if_cheap");
    if (ending.end) {
      harness.gateway.pause();
      setImmediate(() => this.#end(ending.end!)); // after the response to the call was sent
    }
    return ending;
  }
}

const turnFailed = (harness: string, reason: string | undefined): RunFailure => ({
  code: "resource_unavailable",
  message: `${harness} ended its turn with an error: ${reason ?? "no reason given."}`,
  retryable: true,
  reason: "harness_failed",
});

const programDied = (harness: string, why: string): RunFailure => ({
  code: "agent_process_failed",
  message: `${harness} ended during its turn. ${why}`,
  retryable: false,
  reason: "harness_died",
});
