import type { worker } from "@millwright/contracts";
import type { Logger } from "@millwright/telemetry";
import type { Moment } from "../leases/lease-clock.ts";
import { ExecutionCancelled } from "./execution-errors.ts";
import type { ActiveExecution } from "./active-execution.ts";

export type ExecutionsDeps = {
  readonly slots: number;
  readonly log: Logger;
  readonly createExecution: (assignment: worker.Assignment, acceptSent: Moment) => ActiveExecution;
  readonly onDrain: () => void;
  /** Has a heartbeat deliver what is not acknowledged. */
  readonly fetchDirectives: () => void;
};

/** The executions that this worker holds, one slot each. A slot is free again only when nothing of its execution is left. */
export class Executions {
  readonly #deps: ExecutionsDeps;
  readonly #active = new Map<string, ActiveExecution>();
  #waiting: (() => void)[] = [];
  /** Attempts that directives arrived for while they were not active here: the answer to Accept may be on its way. */
  readonly #early = new Set<string>();

  constructor(deps: ExecutionsDeps) {
    this.#deps = deps;
  }

  all(): readonly ActiveExecution[] {
    return [...this.#active.values()];
  }

  freeSlots(): number {
    return Math.max(0, this.#deps.slots - this.#active.size);
  }

  /** Resolves when the next slot becomes free. */
  slotFreed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Runs what an Accept answered, and fetches the directives that arrived before the answer. An execution that runs already continues. */
  begin(assignments: readonly worker.Assignment[], acceptSent: Moment): void {
    for (const assignment of assignments) this.#begin(assignment, acceptSent);
    if (assignments.some((assignment) => this.#early.has(keyOf(assignment)))) this.#deps.fetchDirectives();
    this.#early.clear(); // Accept calls follow each other: whatever else is in it has ended
  }

  #begin(assignment: worker.Assignment, acceptSent: Moment): void {
    const key = keyOf(assignment);
    if (this.#active.has(key)) return;
    try {
      const execution = this.#deps.createExecution(assignment, acceptSent);
      this.#active.set(key, execution);
      void this.#runAndFree(key, execution);
    } catch (error) {
      // Nothing runs and nothing renews: the lease ends by itself and another attempt follows.
      this.#deps.log.error(
        { operation: "begin", executionId: String(assignment.executionId), attempt: assignment.attempt, error },
        "execution not begun",
      );
    }
  }

  async #runAndFree(key: string, execution: ActiveExecution): Promise<void> {
    await execution.run();
    this.#active.delete(key);
    for (const resume of this.#waiting.splice(0)) resume();
  }

  /** Delivers a directive to its execution. What is refused or for no active attempt is dropped: heartbeats repeat what is not acknowledged. */
  route(directive: worker.Directive, from: "stream" | "heartbeat"): void {
    if (directive.directive.case === "drain") this.#deps.onDrain(); // concerns the whole worker, whichever execution it comes with
    const key = keyOf(directive);
    const execution = this.#active.get(key);
    if (!execution) this.#early.add(key);
    else if (!execution.deliver(directive) && from === "stream") this.#deps.fetchDirectives();
  }

  stopAll(message: string): void {
    for (const execution of this.all()) execution.cancel(new ExecutionCancelled("worker_stopping", message));
  }

  /** Nobody shall wait for what is only kept to be looked at. */
  endDebugWindows(why: string): void {
    for (const execution of this.all()) execution.endDebugWindow(why);
  }

  /** Kills every sandbox and gives up every report. */
  abandonAll(why: string): void {
    for (const execution of this.all()) execution.lose(why);
  }

  /** Resolves when nothing is held. */
  async idle(): Promise<void> {
    while (this.#active.size > 0) await this.slotFreed();
  }
}

const keyOf = ({ executionId, attempt }: { executionId: bigint; attempt: number }): string =>
  `${executionId}-${attempt}`;
