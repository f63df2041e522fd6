import type { JsonObject } from "@bufbuild/protobuf";
import { isAnObject, objectAt, type Fields } from "../model/event-fields.ts";
import type { ConversationEvent } from "../model/model-provider.ts";
import type { HarnessName } from "./harness-adapter.ts";

const KIND = "harness_usage";

/** What the worker observed of a turn. */
export type SeenTurn = {
  /**
   * Whether the turn ended by the program's protocol. Otherwise its process ended, or the execution ended in the middle
   * of the turn.
   */
  readonly hasEnded: boolean;
  /** The number of answered steps, and how many of them the provider counted. */
  readonly answered: number;
  readonly counted: number;
};

/**
 * The token counters of an agent program in a run, over all its processes: its own numbers under its own names, without
 * zeros for uncounted values. A `harness_usage` event at the beginning of a turn lists the turn as missed and its tool
 * calls as unknown. The event at its end withdraws that if the whole turn was counted. The newest event is therefore
 * correct whenever the worker is lost.
 */
export class HarnessUsage {
  readonly #harness: HarnessName;
  readonly #record: (kind: string, payload: Fields) => void;
  #counted: JsonObject | undefined;
  /** The number of turns that were not counted or counted only in part. */
  #missedTurns: number;
  /** The number of turns whose tool calls are unknown because the worker was lost. */
  #lostTurns: number;
  readonly #calls: Record<string, number>;
  /** The program's counters of the current turn. */
  #ofTurn: JsonObject | undefined;

  /** @param events the run's events; counting resumes from the newest `harness_usage` event */
  constructor(
    harness: HarnessName,
    events: readonly ConversationEvent[],
    record: (kind: string, payload: Fields) => void,
  ) {
    this.#harness = harness;
    this.#record = record;
    const before =
      events.findLast(({ kind, payload }) => kind === KIND && payload["harness"] === harness)?.payload ?? {};
    this.#counted = isAnObject(before["counted"]) ? before["counted"] : undefined;
    this.#missedTurns = numberAt(before, "missed_turns");
    this.#lostTurns = numberAt(before, "lost_turns");
    this.#calls = Object.fromEntries(
      Object.entries(objectAt(before, "tool_calls")).filter(
        (entry): entry is [string, number] => typeof entry[1] === "number",
      ),
    );
  }

  add(counted: JsonObject): void {
    this.#ofTurn = added(this.#ofTurn ?? {}, counted);
  }

  /** Counts a call of one of the program's tools, under the program's name for it. */
  called(tool: string): void {
    this.#calls[tool] = (Object.hasOwn(this.#calls, tool) ? this.#calls[tool]! : 0) + 1;
  }

  beginTurn(): void {
    this.#ofTurn = undefined;
    this.#publish(this.#missedTurns + 1, this.#lostTurns + 1);
  }

  /** Records the counters at the end of a turn or of the process. */
  endTurn({ hasEnded, answered, counted }: SeenTurn): void {
    // zeros from a program whose provider counts nothing are not a measurement
    const isUnmeasured = answered > 0 && counted === 0;
    if (this.#ofTurn && !isUnmeasured) this.#counted = added(this.#counted ?? {}, this.#ofTurn);
    if (!this.#ofTurn || !hasEnded || counted < answered) this.#missedTurns += 1;
    this.#ofTurn = undefined;
    this.#publish(this.#missedTurns, this.#lostTurns);
  }

  #publish(missedTurns: number, lostTurns: number): void {
    const numbers = { missed_turns: missedTurns, lost_turns: lostTurns, tool_calls: { ...this.#calls } };
    this.#record(KIND, { harness: this.#harness, ...numbers, counted: this.#counted });
  }
}

const numberAt = (object: JsonObject, name: string): number => (typeof object[name] === "number" ? object[name] : 0);

/** Adds numbers recursively; ignores other values. */
function added(before: JsonObject, more: JsonObject): JsonObject {
  const sums: JsonObject = { ...before };
  for (const [name, value] of Object.entries(more)) {
    const known = Object.hasOwn(before, name) ? before[name] : undefined;
    if (typeof value === "number") sums[name] = (typeof known === "number" ? known : 0) + value;
    else if (isAnObject(value)) sums[name] = added(isAnObject(known) ? known : {}, value);
  }
  return sums;
}
