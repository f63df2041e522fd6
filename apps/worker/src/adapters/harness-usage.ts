import type { JsonObject } from "@bufbuild/protobuf";
import { isAnObject, objectAt } from "../model/event-fields.ts";
import type { ConversationEvent } from "../model/model-provider.ts";
import type { HarnessName } from "./harness-adapter.ts";

const KIND = "harness_usage";

/** What a harness has counted in a run so far, over all its processes: its own numbers under its own names, never a 0 for what it did not count. */
export class HarnessUsage {
  readonly #harness: HarnessName;
  readonly #record: (kind: string, payload: JsonObject) => void;
  #counted: JsonObject | undefined;
  /** Turns of which it has said nothing. */
  #missed: number;
  readonly #calls: Record<string, number>;
  #isTold = true;
  #hasCounted = false;

  /** @param events of the run, whose newest word on it is gone on from */
  constructor(harness: HarnessName, events: readonly ConversationEvent[], record: (kind: string, payload: JsonObject) => void) {
    this.#harness = harness;
    this.#record = record;
    const before = events.findLast(({ kind, payload }) => kind === KIND && payload["harness"] === harness)?.payload ?? {};
    this.#counted = isAnObject(before["counted"]) ? before["counted"] : undefined;
    this.#missed = typeof before["missed_turns"] === "number" ? before["missed_turns"] : 0;
    this.#calls = Object.fromEntries(Object.entries(objectAt(before, "tool_calls")).filter((entry): entry is [string, number] => typeof entry[1] === "number"));
  }

  add(counted: JsonObject): void {
    this.#counted = added(this.#counted ?? {}, counted);
    this.#hasCounted = true;
    this.#isTold = false;
  }

  /** A call of one of its tools, under the name that it gives it. */
  called(tool: string): void {
    this.#calls[tool] = (Object.hasOwn(this.#calls, tool) ? this.#calls[tool]! : 0) + 1;
    this.#isTold = false;
  }

  /** A turn has ended, or its process has: the run is told what has been counted until now. */
  endTurn(): void {
    if (!this.#hasCounted) this.#missed += 1;
    this.#hasCounted = false;
    if (this.#isTold) return;
    this.#isTold = true;
    this.#record(KIND, { harness: this.#harness, missed_turns: this.#missed, tool_calls: { ...this.#calls }, ...(this.#counted ? { counted: this.#counted } : {}) });
  }
}

/** Numbers are added, in whatever they lie; everything else is left out. */
function added(before: JsonObject, more: JsonObject): JsonObject {
  const sums: JsonObject = { ...before };
  for (const [name, value] of Object.entries(more)) {
    const known = Object.hasOwn(before, name) ? before[name] : undefined;
    if (typeof value === "number") sums[name] = (typeof known === "number" ? known : 0) + value;
    else if (isAnObject(value)) sums[name] = added(isAnObject(known) ? known : {}, value);
  }
  return sums;
}
