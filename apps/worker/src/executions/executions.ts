import type { worker } from "@millwright/contracts";
import type { Logger } from "@millwright/telemetry";
import type { Moment } from "../time/moment.ts";
import { ExecutionCancelled } from "../context/execution-errors.ts";
import type { ActiveExecution } from "./active-execution.ts";

export type ExecutionsDeps = {
  readonly slots: number;
  readonly log: Logger;
  readonly createExecution: (assignment: worker.Assignment, acceptSent: Moment) => ActiveExecution;
  readonly onDrain: () => void;
  /** Sends a heartbeat, whose response contains unacknowledged directives. */
  readonly fetchDirectives: () => void;
};

/** The active executions of this worker, one slot each. A slot is freed only when nothing of its execution remains. */
export class Executions {
  readonly #deps: ExecutionsDeps;
  readonly #active = new Map<string, ActiveExecution>();
  #waiting: (() => void)[] = [];
  /** Attempts with directives that arrived before the response to Accept. */
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

  /**
   * Runs the accepted executions, and fetches directives that arrived before the response. Executions that are already
   * running continue.
   */
  begin(assignments: readonly worker.Assignment[], acceptSent: Moment): void {
    for (const assignment of assignments) this.#begin(assignment, acceptSent);
    if (assignments.some((assignment) => this.#early.has(keyOf(assignment)))) this.#deps.fetchDirectives();
    this.#early.clear(); // Accept calls are sequential, so any other entry belongs to an ended attempt
  }

  #begin(assignment: worker.Assignment, acceptSent: Moment): void {
    const key = keyOf(assignment);
    if (this.#active.has(key)) return;
    try {
      const execution = this.#deps.createExecution(assignment, acceptSent);
      this.#active.set(key, execution);
      void this.#runAndFree(key, execution);
    } catch (error) {
      // Nothing runs and nothing renews the lease: it expires, and another attempt follows.
      this.#deps.log.error(
        { operation: "begin", executionId: String(assignment.executionId), attempt: assignment.attempt, error },
        "execution not started",
      );
    }
  }

  async #runAndFree(key: string, execution: ActiveExecution): Promise<void> {
    await execution.run();
    this.#active.delete(key);
    for (const resume of this.#waiting.splice(0)) resume();
  }

  /**
   * Delivers a directive to its execution. A rejected directive and one without an active attempt are dropped, because
   * heartbeats repeat unacknowledged directives.
   */
  route(directive: worker.Directive, from: "stream" | "heartbeat"): void {
    // concerns the whole worker, whichever execution it is addressed to
    if (directive.directive.case === "drain") this.#deps.onDrain();
    const key = keyOf(directive);
    const execution = this.#active.get(key);
    if (!execution) this.#early.add(key);
    else if (!execution.deliver(directive) && from === "stream") this.#deps.fetchDirectives();
  }

  stopAll(message: string): void {
    for (const execution of this.all()) execution.cancel(new ExecutionCancelled("worker_stopping", message));
  }

  /** Ends debug windows during a drain. */
  endDebugWindows(why: string): void {
    for (const execution of this.all()) execution.endDebugWindow(why);
  }

  /** Kills every sandbox and abandons every report. */
  abandonAll(why: string): void {
    for (const execution of this.all()) execution.lose(why);
  }

  /** Resolves when no execution is active. */
  async idle(): Promise<void> {
    while (this.#active.size > 0) await this.slotFreed();
  }
}

const keyOf = ({ executionId, attempt }: { executionId: bigint; attempt: number }): string =>
  `${executionId}-${attempt}`;
