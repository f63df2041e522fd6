import type { Directive } from "../../src/runs/domain/directive.ts";
import type { NewDirective, Wait } from "../../src/runs/domain/run-change.ts";
import type { MessageKind, MessageMode } from "../../src/runs/domain/message.ts";
import type { NewRunEvent, WorkerEvent } from "../../src/runs/domain/run-events.ts";
import type { RunRecord } from "../../src/runs/domain/run-record.ts";
import type { ExecutionState, Outcome, RunState, RunStatus } from "../../src/runs/domain/run.ts";
import { Journal, Table } from "./tables.ts";

export type RunRow = {
  readonly record: RunRecord;
  readonly state: RunState;
  readonly status?: RunStatus;
  readonly submittedPrompt?: string;
  readonly hasStarted: boolean;
  readonly executionCount: number;
};

export type ExecutionRow = {
  readonly id: number;
  readonly runUid: string;
  readonly seq: number;
  readonly state: ExecutionState;
  readonly attempt: number;
  readonly acceptedAttempt: number;
  readonly retainedAttempts: readonly number[];
  readonly outcome?: Outcome;
  readonly setupLosses: number;
  readonly runLosses: number;
  readonly lane: string;
  readonly workerHost?: string;
  readonly snapshotKey?: string;
};

/**
 * `isExpired`: the lease has expired, but is not removed yet. `isStopping`: the grace period is running. `isFenced`:
 * the grace period is over.
 */
export type LeaseRow = {
  readonly executionId: number;
  readonly attempt: number;
  readonly runUid: string;
  readonly sessionUid: string;
  readonly isAccepted: boolean;
  readonly isExpired: boolean;
  readonly isStopping: boolean;
  readonly isFenced: boolean;
};

export type StreamRow = {
  readonly lastSeq: number;
  readonly executionId?: number;
  readonly attempt?: number;
  readonly lastClientSeq: number;
};
export type EventRow = { readonly runUid: string; readonly seq: number; readonly attempt?: number } & (
  | NewRunEvent
  | (Pick<WorkerEvent, "kind" | "payload"> & { readonly executionId?: number })
);

export type MessageRow = {
  readonly uid: string;
  readonly runUid: string;
  readonly seq: number;
  readonly kind: MessageKind;
  readonly text: string;
  readonly mode: MessageMode;
  readonly executionId?: number;
  readonly takenAs?: "input" | "directive";
  readonly isDelivered: boolean;
  readonly deliveredAttempt?: number;
  readonly isUndeliverable: boolean;
};

/** Returns a stored directive with the `seq` of the previous directive in its attempt. */
export function directiveOf(rows: Rows, { executionId, attempt, seq, kind, payload }: DirectiveRow): Directive {
  const before = rows.directives
    .all()
    .filter(
      (directive) => directive.executionId === executionId && directive.attempt === attempt && directive.seq < seq,
    );
  return {
    executionId,
    attempt,
    seq,
    previousSeq: Math.max(0, ...before.map((directive) => directive.seq)),
    kind,
    payload,
  };
}

export type DirectiveRow = NewDirective & {
  readonly executionId: number;
  readonly seq: number;
  readonly attempt: number;
  readonly isAcked: boolean;
};
export type CapacityRow = {
  readonly inUse: number;
  readonly max: number;
  readonly isPaused: boolean;
  readonly weight: number;
  readonly priority: number;
  readonly version: number;
  readonly virtualTime: number;
  readonly lastStart: number;
};
export type SessionRow = {
  readonly uid: string;
  readonly workerHost: string;
  readonly teamUid?: string;
  readonly slots: number;
  readonly harnessTypes: readonly string[];
  readonly images: readonly string[];
  readonly arch?: string;
};

/** The tables of the run life cycle, in memory. Migration 0001 documents each table. */
export class Rows {
  readonly journal = new Journal();
  readonly runs = new Table<string, RunRow>(this.journal);
  readonly executions = new Table<number, ExecutionRow>(this.journal);
  readonly leases = new Table<number, LeaseRow>(this.journal);
  readonly streams = new Table<string, StreamRow>(this.journal);
  readonly events = new Table<string, EventRow>(this.journal);
  readonly messages = new Table<string, MessageRow>(this.journal);
  readonly directives = new Table<string, DirectiveRow>(this.journal);
  readonly waits = new Table<string, Wait>(this.journal);
  readonly reported = new Table<string, { readonly executionCount: number }>(this.journal);
  readonly capacity = new Table<string, CapacityRow>(this.journal);
  readonly answers = new Table<string, { readonly body: string; readonly answer: unknown }>(this.journal);
  readonly sessions = new Table<string, SessionRow>(this.journal);
  #executions = 0;

  nextExecutionId(): number {
    return ++this.#executions;
  }

  executionsOf(runUid: string): ExecutionRow[] {
    return this.#of(this.executions, runUid).toSorted((a, b) => a.seq - b.seq);
  }

  messagesOf(runUid: string): MessageRow[] {
    return this.#of(this.messages, runUid).toSorted((a, b) => a.seq - b.seq);
  }

  eventsOf(runUid: string): EventRow[] {
    return this.#of(this.events, runUid).toSorted((a, b) => a.seq - b.seq);
  }

  childrenOf(runUid: string): RunRow[] {
    return this.runs.all().filter(({ record }) => record.parentRunUid === runUid);
  }

  #of<K, V extends { readonly runUid: string }>(table: Table<K, V>, runUid: string): V[] {
    return table.all().filter((row) => row.runUid === runUid);
  }
}
