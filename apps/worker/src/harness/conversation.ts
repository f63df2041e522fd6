import type { JsonObject } from "@bufbuild/protobuf";
import type { ExecutionContext, HistoryEvent } from "../executions/execution-context.ts";
import { textAt } from "../model/event-fields.ts";
import type { ConversationEvent } from "../model/model-provider.ts";

/** What happened in the run so far: the history, and what this execution adds. What is recorded here is on its way to the platform. */
export class Conversation {
  readonly #events: ConversationEvent[];
  readonly #emit: ExecutionContext["emit"];

  constructor(history: readonly HistoryEvent[], emit: ExecutionContext["emit"]) {
    this.#events = [...history];
    this.#emit = emit;
  }

  get events(): readonly ConversationEvent[] {
    return this.#events;
  }

  record(kind: string, payload: JsonObject): void {
    this.#events.push({ kind, payload });
    this.#emit(kind, payload);
  }

  /** The commit that this run pushed last to a branch of a repository, as far as its events tell. */
  lastPushed(repository: string, branch: string): string | undefined {
    const pushed = this.#events.findLast(({ kind, payload }) => kind === "pushed" && payload["repository"] === repository && payload["branch"] === branch);
    return pushed && (textAt(pushed.payload, "sha") || undefined);
  }
}
