import type { Assignment } from "../../src/runs/domain/assignment.ts";
import type { Directive } from "../../src/runs/domain/directive.ts";
import type { WorkerEvent } from "../../src/runs/domain/run-events.ts";
import type { Outcome } from "../../src/runs/domain/run.ts";
import type { WorkerSession } from "../../src/runs/domain/worker-session.ts";
import type { EventBatch } from "../../src/runs/usecases/append-events.ts";
import type { Completion } from "../../src/runs/usecases/end-execution.ts";

/** The worker's side of one accepted execution: sends events in order and drops duplicate directives. */
export class OwnedExecution {
  readonly session: WorkerSession;
  readonly assignment: Assignment;
  /** Whether a call is in progress. Heartbeats are sent concurrently. */
  isBusy = false;
  hasStarted = false;
  isStopped = false;
  /** Whether its setup failed and it is retained for the debug window. */
  isRetained = false;
  lastBatch: EventBatch | undefined;
  lastCompletion: Completion | undefined;
  #toSee: { uid: string; text: string }[];
  #clientSeq = 0;
  #directiveSeq = 0;

  constructor(session: WorkerSession, assignment: Assignment) {
    this.session = session;
    this.assignment = assignment;
    this.#toSee = assignment.inputs.map(({ uid, text }) => ({ uid, text }));
    this.receive(assignment.directives);
  }

  get runUid(): string {
    return this.assignment.job.run.runUid;
  }

  get ref() {
    return { executionId: this.assignment.executionId, attempt: this.assignment.attempt };
  }

  /**
   * The agent's next step. An execution that was asked to stop does not start, but may still receive messages already
   * sent to it.
   */
  get next(): "start" | "see" | undefined {
    if (!this.hasStarted && !this.isRetained) return this.isStopped ? undefined : "start";
    return this.#toSee.length > 0 ? "see" : undefined;
  }

  heartbeat(ackAll = true) {
    return {
      state: "READY" as const,
      freeSlots: 1,
      leases: [{ ...this.ref, phase: "RUNNING", ackedDirectiveSeq: ackAll ? this.#directiveSeq : 0 }],
    };
  }

  receive(directives: readonly Directive[]): void {
    for (const { executionId, attempt, seq, previousSeq, kind, payload } of directives) {
      if (executionId !== this.ref.executionId || attempt !== this.ref.attempt || seq <= this.#directiveSeq) continue;
      if (previousSeq > this.#directiveSeq) continue; // a gap: the next heartbeat delivers both
      this.#directiveSeq = seq;
      if (kind === "cancel") this.isStopped = true;
      if (kind === "followup")
        this.#toSee.push({ uid: payload["message_uid"] as string, text: payload["text"] as string });
    }
  }

  /**
   * Retains the execution for debugging. Its inputs are never received; messages sent after the failure are received in
   * the debug session.
   */
  retain(): void {
    this.isRetained = true;
    this.#toSee = this.#toSee.filter(({ uid }) => !this.assignment.inputs.some((input) => input.uid === uid));
  }

  startBatch(): EventBatch {
    this.hasStarted = true;
    return this.#batch([
      { kind: "sandbox_ready", payload: { kind: "none" } },
      { kind: "agent_started", payload: { session_id: "s" } },
    ]);
  }

  /** Delivers the next message to the agent. */
  seeBatch(): EventBatch {
    const { uid, text } = this.#toSee.shift()!;
    return this.#batch([{ kind: "message", payload: { role: "user", text, message_uid: uid } }]);
  }

  completion(outcome: Outcome, policy: "all" | "any" = "all", isRetained = false): Completion {
    this.lastCompletion = {
      ...this.ref,
      outcome,
      isRetained,
      lastClientSeq: this.#clientSeq,
      waitFor: outcome === "WAITING" ? { policy, runUids: [] } : undefined,
    };
    return this.lastCompletion;
  }

  #batch(events: Pick<WorkerEvent, "kind" | "payload">[]): EventBatch {
    this.lastBatch = {
      ...this.ref,
      events: events.map((event) => ({ ...event, clientSeq: ++this.#clientSeq, at: new Date(0) })),
    };
    return this.lastBatch;
  }
}
