import type { worker } from "@millwright/contracts";
import type { LeaseRef } from "../protocol/offer.ts";

/** An execution for which a machine is to be had. */
export type Order = worker.DispatchedExecution;

/** A machine that was asked for, as much as is needed to find it again. `startedMs`: by the wall clock. */
export type Machine = LeaseRef & { readonly runUid: string; readonly startedMs: number };

/** Why a machine is ended: its run was cancelled, its attempt is not the platform's any more, or it did not take its execution. */
export type EndReason = "cancelled" | "lost" | "not_started";

/** A machine that does not come, or has gone: a word for programs, and a sentence for people, both public. */
export class MachineFailed extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.name = "MachineFailed";
    this.reason = reason;
  }
}

/** Where executions run that are not run by this worker itself. What a machine does is told by its lease, never by what started it. */
export interface Backend {
  readonly name: string;
  /** Images that runs may name; absent: any. */
  readonly images?: readonly string[];
  /** Who this worker is to the platform: the same after a restart, so that what it dispatched stays its own. Errors: those of where it is kept. */
  instanceUid(): Promise<string>;
  /** Machines asked for by this worker, before it was restarted too, that may still be there. */
  known(): Promise<readonly Machine[]>;
  /** Asks for a machine. Resolves when somebody else answers for it. Errors: MachineFailed. */
  start(order: Order, startedMs: number): Promise<void>;
  /** What is wrong with a machine that was asked for, if it is known to be of no use any more. */
  faultOf(machine: Machine, isTaken: boolean): Promise<MachineFailed | undefined>;
  /** Ends what may be left of a machine. Repeating it is harmless. Errors: any; it is tried again. */
  end(machine: Machine, why: EndReason): Promise<void>;
  /** Its execution has ended in order: nothing needs to be remembered. */
  forget(machine: Machine): Promise<void>;
  /** Calls back when something may have happened to a machine; absent: it is looked at with each heartbeat. */
  watch?(changed: () => void, signal: AbortSignal): void;
}
