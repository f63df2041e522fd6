import { omitUndefined } from "@millwright/json";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { HistoryEvent } from "../context/platform-client.ts";
import { textAt, type Fields } from "../model/event-fields.ts";
import type { ConversationEvent } from "../model/model-provider.ts";

/**
 * The events of the conversation: the history and those of this attempt. Each recorded event is also sent to the
 * platform.
 */
export class Conversation {
  /** The events of earlier runs. */
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

  /** The events of this run, oldest first. */
  get events(): readonly ConversationEvent[] {
    return this.#events;
  }

  /** The events of this execution, including those of lost attempts. */
  get ofExecution(): readonly ConversationEvent[] {
    return this.#events.slice(this.#begun);
  }

  /** Whether the agent has already started in this execution. If so, an attempt or a sandbox was lost. */
  get hasStarted(): boolean {
    return this.ofExecution.some(({ kind }) => kind === "agent_started");
  }

  record(kind: string, fields: Fields): void {
    const payload = omitUndefined(fields);
    this.#events.push({ kind, payload });
    this.#emit(kind, payload);
  }

  /**
   * Returns the commit that earlier executions of this run last pushed to a branch of a repository, according to the
   * run's events.
   */
  lastPushed(repository: string, branch: string): string | undefined {
    const before = this.#events.slice(0, this.#begun);
    const pushed = before.findLast(
      ({ kind, payload }) => kind === "pushed" && payload["repository"] === repository && payload["branch"] === branch,
    );
    return pushed && (textAt(pushed.payload, "sha") || undefined);
  }
}
