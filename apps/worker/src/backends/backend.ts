import type { worker } from "@millwright/contracts";
import type { LeaseRef } from "../protocol/offer.ts";

/** An execution that requires a machine. */
export type Order = worker.DispatchedExecution;

/** A requested machine and the data required to find it again. `startedMs` is wall-clock time. */
export type Machine = LeaseRef & { readonly runUid: string; readonly startedMs: number };

/**
 * Why a machine is ended: its run was cancelled, its attempt is no longer valid, or it did not accept its execution.
 */
export type EndReason = "cancelled" | "lost" | "not_started";

/** Thrown when a machine failed to start or disappeared. The reason code and the message are both public. */
export class MachineFailed extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.name = "MachineFailed";
    this.reason = reason;
  }
}

/**
 * Starts machines for executions that this worker does not run itself. The state of an execution comes from its lease,
 * never from the backend.
 */
export interface Backend {
  readonly name: string;
  /** Images that runs may name; absent: any image. */
  readonly images?: readonly string[];
  /**
   * Returns the stable uid of this worker. The uid survives a restart, so the worker still owns the executions that it
   * dispatched. Errors: those of the backend's storage.
   */
  instanceUid(): Promise<string>;
  /** Returns the machines that this worker requested, including before a restart, and that may still exist. */
  known(): Promise<readonly Machine[]>;
  /** Requests a machine. Resolves when another system is responsible for the machine. Throws `MachineFailed`. */
  start(order: Order, startedMs: number): Promise<void>;
  /** Returns the fault of a requested machine if the backend knows that the machine is unusable. */
  faultOf(machine: Machine, isTaken: boolean): Promise<MachineFailed | undefined>;
  /** Ends what may remain of a machine. Idempotent. May throw any error; the call is retried. */
  end(machine: Machine, why: EndReason): Promise<void>;
  /** Called after the machine's execution has ended normally: the backend can delete its record of the machine. */
  forget(machine: Machine): Promise<void>;
  /** Calls `changed` when a machine may have changed. If absent, machines are checked with each heartbeat. */
  watch?(changed: () => void, signal: AbortSignal): void;
}
