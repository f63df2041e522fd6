import type { JsonObject } from "@bufbuild/protobuf";
import { omitUndefined } from "@millwright/json";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { Checkpoints } from "../workspace/checkpoints.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { textAt, type Fields } from "../model/event-fields.ts";
import { actionOf } from "./harness-actions.ts";
import type { HarnessEvent, HarnessName, HarnessSession } from "./harness-adapter.ts";
import { HarnessUsage, type SeenTurn } from "./harness-usage.ts";
import { isPlatformTool } from "./platform-mcp.ts";
import { UnknownLines } from "./unknown-lines.ts";

const OUTPUT_CHARACTERS_MAX = 32_000;
const SESSION_KIND = "harness_session";

export type HarnessRecordDeps = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly checkpoints: Checkpoints;
  readonly harness: HarnessName;
};

type OpenCall = { readonly callId: string; readonly shown: JsonObject; readonly beganMs: number };

/** Records the output of a harness as events of its run. */
export class HarnessRecord {
  readonly #deps: HarnessRecordDeps;
  readonly #calls = new Map<string, OpenCall>();
  readonly #usage: HarnessUsage;
  readonly #unknown: UnknownLines;
  #count = 0;

  constructor(deps: HarnessRecordDeps) {
    this.#deps = deps;
    const { ctx, conversation, harness } = deps;
    const record = (kind: string, payload: Fields) => conversation.record(kind, payload);
    this.#usage = new HarnessUsage(harness, conversation.events, record);
    this.#unknown = new UnknownLines(conversation.events, { harness, mask: (text) => ctx.mask(text), record });
  }

  /** @param isWanted whether the worker ends the turn, so that its running calls are interrupted, not failed */
  add(event: Exclude<HarnessEvent, { t: "session" | "turn_end" }>, isWanted: boolean): void {
    const { conversation } = this.#deps;
    switch (event.t) {
      case "message":
        return conversation.record("message", { role: "assistant", text: event.text });
      case "tool_start":
        this.#usage.called(event.name);
        return isPlatformTool(event.name) ? undefined : this.#began(event);
      case "tool_end":
        return this.#ended(event.id, event.ok ? "completed" : isWanted ? "interrupted" : "failed", event.output);
      case "warning":
        return conversation.record("warning", { text: event.text });
      case "usage":
        return this.#usage.add(event.counted);
      case "unknown":
        return this.#unknown.add(event.line);
      default:
        return event satisfies never;
    }
  }

  /** Records the session, which the next execution resumes. */
  begin({ id }: HarnessSession): void {
    const { conversation, harness } = this.#deps;
    if (sessionOf(conversation, harness) !== id) conversation.record(SESSION_KIND, { harness, session_id: id });
  }

  beginTurn(): void {
    this.#usage.beginTurn();
  }

  /** Ends the turn or the process: closes all open calls. */
  endTurn(seen: SeenTurn): void {
    for (const id of [...this.#calls.keys()])
      this.#ended(id, "interrupted", "It was interrupted; its effect is unknown.");
    this.#usage.endTurn(seen);
  }

  /** Returns a call id that is unique in the run. */
  nextId(): string {
    const { executionId, attempt } = this.#deps.ctx.assignment;
    return `e${executionId}-a${attempt}-t${(this.#count += 1)}`;
  }

  #began({ id, name: tool, input }: HarnessEvent & { t: "tool_start" }): void {
    const { ctx, conversation } = this.#deps;
    const shown = { call_id: this.nextId(), ...actionOf(tool), input };
    conversation.record("tool_start", shown);
    this.#calls.set(id, { callId: shown.call_id, shown, beganMs: ctx.clock.monotonicMs() });
  }

  #ended(id: string, state: string, output: string): void {
    const call = this.#calls.get(id);
    if (!call) return;
    this.#calls.delete(id);
    const { ctx, conversation, checkpoints } = this.#deps;
    const text = ctx.mask(output);
    const shown = omitUndefined({
      output: text.slice(0, OUTPUT_CHARACTERS_MAX),
      truncated: text.length > OUTPUT_CHARACTERS_MAX || undefined,
    });
    conversation.record("tool_end", {
      ...call.shown,
      state,
      output: state === "completed" ? shown : { error: shown["output"] },
      duration_ms: Math.round(ctx.clock.monotonicMs() - call.beganMs),
    });
    checkpoints.note("if_cheap");
    checkpoints.begin();
  }
}

/** Returns the session that the run's events contain; undefined if a new one starts. */
export function sessionOf({ events }: Pick<Conversation, "events">, harness: HarnessName): string | undefined {
  const begun = events.findLast(({ kind, payload }) => kind === SESSION_KIND && payload["harness"] === harness);
  return begun && (textAt(begun.payload, "session_id") || undefined);
}
