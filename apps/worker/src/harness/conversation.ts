import type { JsonObject } from "@bufbuild/protobuf";
import type { ExecutionContext, HistoryEvent } from "../executions/execution-context.ts";
import { textAt } from "../model/event-fields.ts";
import type { ConversationEvent } from "../model/model-provider.ts";

/** What happened in the conversation so far: the history, and what this attempt adds. What is recorded here is on its way to the platform. */
export class Conversation {
  /** What was said and done in earlier runs. */
  readonly earlier: readonly ConversationEvent[];
  readonly #events: ConversationEvent[];
  readonly #begun: number;
  readonly #emit: ExecutionContext["emit"];

  constructor(history: readonly HistoryEvent[], { assignment, emit }: Pick<ExecutionContext, "assignment" | "emit">) {
    const own = history.filter(({ runUid }) => runUid === assignment.runUid);
    this.earlier = history.filter(({ runUid }) => runUid !== assignment.runUid);
    this.#events = [...own];
    const begun = own.findIndex(({ executionId }) => executionId === assignment.executionId);
    this.#begun = begun < 0 ? own.length : begun;
    this.#emit = emit;
  }

  /** Of this run, oldest first. */
  get events(): readonly ConversationEvent[] {
    return this.#events;
  }

  /** Of this execution, those of lost attempts included. */
  get ofExecution(): readonly ConversationEvent[] {
    return this.#events.slice(this.#begun);
  }

  /** Whether the agent has begun in this execution: an attempt was lost, or a sandbox. */
  get isUnderWay(): boolean {
    return this.ofExecution.some(({ kind }) => kind === "agent_started");
  }

  record(kind: string, payload: JsonObject): void {
    this.#events.push({ kind, payload });
    this.#emit(kind, payload);
  }

  /** The commit that earlier executions of this run pushed last to a branch of a repository, as far as its events tell. */
  lastPushed(repository: string, branch: string): string | undefined {
    const before = this.#events.slice(0, this.#begun);
    const pushed = before.findLast(
      ({ kind, payload }) => kind === "pushed" && payload["repository"] === repository && payload["branch"] === branch,
    );
    return pushed && (textAt(pushed.payload, "sha") || undefined);
  }
}
