import type { worker } from "@millwright/contracts";
import type { LeaseRef } from "../protocol/offer.ts";

/** An execution that needs a machine. */
export type Order = worker.DispatchedExecution;

/** A requested machine, with what is needed to find it again. `startedMs`: by the wall clock. */
export type Machine = LeaseRef & { readonly runUid: string; readonly startedMs: number };

/** Why a machine is ended: its run was cancelled, its attempt is no longer valid, or it did not take its execution. */
export type EndReason = "cancelled" | "lost" | "not_started";

/** A machine failed to start or disappeared: a code, and a sentence for people, both public. */
export class MachineFailed extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.name = "MachineFailed";
    this.reason = reason;
  }
}

/**
 * Starts machines for executions that this worker does not run itself. The lease reports what a machine does, not the
 * backend.
 */
export interface Backend {
  readonly name: string;
  /** Images that runs may name; absent: any. */
  readonly images?: readonly string[];
  /**
   * The stable uid of this worker, also after a restart, so that it still owns what it dispatched. Errors: those of its
   * storage.
   */
  instanceUid(): Promise<string>;
  /** Machines that this worker requested, also before a restart, and that may still exist. */
  known(): Promise<readonly Machine[]>;
  /** Requests a machine. Resolves when another system has taken responsibility for it. Errors: MachineFailed. */
  start(order: Order, startedMs: number): Promise<void>;
  /** Returns the fault of a requested machine if it is known to be unusable. */
  faultOf(machine: Machine, isTaken: boolean): Promise<MachineFailed | undefined>;
  /** Ends what may remain of a machine. Idempotent. Errors: any; the call is retried. */
  end(machine: Machine, why: EndReason): Promise<void>;
  /** Called after its execution has ended normally: its record can be deleted. */
  forget(machine: Machine): Promise<void>;
  /** Calls back when a machine may have changed; absent: machines are checked with each heartbeat. */
  watch?(changed: () => void, signal: AbortSignal): void;
}
