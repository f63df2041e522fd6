import type { RunUid } from "@millwright/ids";
import type { OnceRequest } from "../../storage/domain/once-request.ts";
import type { Directive } from "./directive.ts";
import type { Attachment, Message, NewMessage } from "./message.ts";
import type { CapacityDefaults, ScopeSettings } from "../../catalog/domain/queue-settings.ts";
import type { ChangeContext, LockedRun, RunChange } from "./run-change.ts";
import type { RunRecord } from "./run-record.ts";
import type { Owner, Run, RunState } from "./run.ts";
import type { NewRunEvent, WorkerEvent } from "./run-events.ts";
import type { LossPolicy } from "../../catalog/domain/agent-config.ts";
import type { SandboxShape } from "./sandbox-shape.ts";
import type { Child } from "./wait.ts";

/** An attempt of an execution, with its run. */
export type AttemptRef = { readonly runUid: string; readonly executionId: number; readonly attempt: number };

export type AppendOutcome =
  | { readonly outcome: "appended"; readonly ackedClientSeq: number; readonly lastSeq: number }
  | { readonly outcome: "gap"; readonly ackedClientSeq: number }
  | { readonly outcome: "lease_lost" };

/** The members of a parent run that creating its children requires. */
export type RunParent = {
  readonly uid: RunUid;
  readonly rootRunUid: RunUid;
  readonly depth: number;
  readonly state: RunState;
  readonly owner: Owner;
  readonly metadata: Readonly<Record<string, string>>;
  /** True if it or an ancestor has a cost limit. */
  readonly isCostLimited?: boolean;
};

/** The owner, agent and factory whose capacity an execution uses. */
export type CapacitySubject = {
  readonly owner: Owner;
  readonly agentUid?: string | undefined;
  readonly factoryUid?: string | undefined;
};

/** A request for which its owner gets one run, without a time limit. */
export type Cause = { readonly ownerUid: string; readonly causeKey: string };

export type RunOfExecution = { readonly uid: RunUid; readonly parentRunUid?: RunUid };

/** The operations of use cases on runs inside one transaction. Implemented by the store. */
export interface RunTransaction {
  /**
   * Runs `f` once per principal, operation and key; later calls return its (JSON) result. Must precede all locks.
   * Errors: idempotency_mismatch (conflict).
   */
  once<T>(request: OnceRequest, f: () => Promise<T>): Promise<T>;
  /**
   * Locks runs in uid order and returns them, each with its newest execution, or with the one of `executionIds`. Runs
   * that do not exist are left out.
   */
  lockRuns(uids: readonly string[], executionIds?: readonly number[]): Promise<LockedRun[]>;
  /**
   * Locks runs in uid order, in share mode. A locked parent cannot end while it gets children; another locked run
   * cannot lose the workspace it left.
   */
  lockParents(uids: readonly string[]): Promise<RunParent[]>;
  /**
   * Prevents a factory from being closed until the transaction ends. Returns false if the factory is closed and must
   * not get runs.
   */
  lockFactoryOpen(factoryUid: string): Promise<boolean>;
  /**
   * Inserts queued runs in one statement. Returns those that were inserted: a cause that has already created a run
   * creates no other.
   */
  insertRuns(runs: readonly RunRecord[], context: ChangeContext): Promise<Run[]>;
  /**
   * Offers a new run's execution to the client that executes it, before it is visible to workers. Returns the
   * execution's id.
   */
  offerToClient(runUid: string, clientUid: string): Promise<number>;
  /** Returns the runs that causes have created already, in the order of the causes. */
  findByCauses(causes: readonly Cause[]): Promise<(RunUid | undefined)[]>;
  /**
   * Locks the conversation until the transaction ends. Must precede locks of its runs. Returns the owner's current
   * (newest top-level) run in it.
   */
  lockConversation(conversation: Pick<LockedRun, "conversationUid" | "owner">): Promise<RunUid | undefined>;
  /** Returns the run that a message was sent to. */
  runOfMessage(messageUid: string): Promise<RunUid | undefined>;
  /**
   * Stores the settings, and returns whether a maximum is reached now. Writes only after `before`, which takes the
   * locks that precede those of capacities.
   */
  ensureCapacity(
    subject: CapacitySubject,
    settings: ScopeSettings,
    defaults: CapacityDefaults,
    before: Promise<unknown>,
  ): Promise<boolean>;
  /** Reads without a lock, because the run of an execution and the parent of a run never change. */
  runOfExecution(executionId: number): Promise<RunOfExecution | undefined>;
  parentOf(runUid: string): Promise<RunUid | undefined>;
  /** Returns the active descendants of a run, at any depth, and descendants with an open debug window. */
  liveDescendants(runUid: string): Promise<RunUid[]>;
  /** Saves changes of locked runs, with their events. */
  save(changes: readonly RunChange[], context: ChangeContext): Promise<void>;
  appendRunEvents(runUid: string, events: readonly NewRunEvent[]): Promise<void>;

  addMessage(message: NewMessage): Promise<void>;
  /** Returns the size in bytes of the prompt and follow-ups that the run's agent has not received yet. */
  countUndeliveredTextBytes(runUid: string): Promise<number>;
  /**
   * Assigns all messages that the agent has not received to the execution that is being accepted. Returns them, oldest
   * first.
   */
  assignInputs(runUid: string, executionId: number): Promise<Message[]>;
  /** Returns the messages that an execution received when it was accepted. */
  inputsOf(runUid: string, executionId: number): Promise<Message[]>;
  /**
   * Returns the files of messages that were delivered to agents in the conversation of a run, by runs of the same
   * owner; oldest first.
   */
  earlierAttachments(run: Pick<LockedRun, "conversationUid" | "owner">): Promise<Attachment[]>;
  /**
   * Assigns the interrupts that a lost attempt did not acknowledge to the current attempt, and returns them.
   * Idempotent.
   */
  takeOverDirectives(executionId: number, attempt: number): Promise<Directive[]>;
  /**
   * Returns the workspace that an execution starts with: its own checkpoint, else the newest workspace saved before it
   * by runs of its conversation that have the same owner.
   */
  workspaceOf(run: Pick<LockedRun, "conversationUid" | "owner">, executionId: number): Promise<string | undefined>;
  /** Returns whether a run's snapshot is still stored. */
  isSnapshotStored(key: string): Promise<boolean>;
  /** Returns whether a snapshot key was issued to an execution. */
  ownsSnapshot(key: string, executionId: number): Promise<boolean>;
  /** Records the execution's newest workspace between steps, and deletes its older snapshots. */
  setCheckpoint(executionId: number, key: string): Promise<void>;
  /** Deletes all snapshots of an execution except this one. */
  deleteOtherSnapshots(executionId: number, key: string): Promise<void>;
  /** Returns the policy of the agent's configuration for the loss of a worker. */
  onWorkerLoss(runUid: string): Promise<LossPolicy>;
  /** Returns how long a worker retains the workspace of the run's failed setup, in milliseconds; 0: it does not. */
  debugWindowMs(runUid: string): Promise<number>;
  leaseExpiry(executionId: number): Promise<Date>;
  /** Allows any process with the token to take over an accepted lease of a session. Invalidates an earlier token. */
  storeOfferToken(
    sessionUid: string,
    lease: { readonly executionId: number; readonly attempt: number },
    token: string,
  ): Promise<void>;
  hasUndeliveredDirectives(runUid: string, executionId: number): Promise<boolean>;
  /**
   * Unassigns the messages that the agent of a lost attempt has not received, so that the next attempt receives them.
   */
  unassignMessages(runUid: string, executionId: number): Promise<void>;
  /**
   * Marks the undelivered follow-ups of an ended run as undeliverable, and returns their uids. Follow-ups sent to a
   * stopping or retained execution, or to `stopping`, which is about to be one, are excluded: its worker may have
   * delivered them already and not reported it yet.
   */
  dropUndeliveredFollowups(runUid: string, reason: string, stopping?: number): Promise<string[]>;
  /**
   * Marks the follow-ups that an ended execution received (only as `takenAs`, if given) and did not deliver as
   * undeliverable. Returns their uids.
   */
  dropUndeliveredFollowupsOf(runUid: string, reason: string, executionId: number, takenAs?: "input"): Promise<string[]>;

  /**
   * Returns the children whose latest end has not been reported to the parent, which must be locked. If `named` has
   * entries, only those children are returned.
   */
  unreportedChildren(parentUid: string, named?: readonly string[]): Promise<Child[]>;
  markReported(parentUid: string, children: readonly Child[]): Promise<void>;

  /** Records that these messages were delivered to the agent. */
  markDelivered(runUid: string, messageUids: readonly string[]): Promise<void>;
  setSandboxRunning(executionId: number, isRunning: boolean): Promise<void>;
  /** Records the limits of the current attempt's sandbox. */
  setSandboxShape(executionId: number, shape: SandboxShape): Promise<void>;
  /** Records that the stall of an execution was reported. */
  markStallWarned(executionId: number): Promise<void>;
  /** Appends events of an attempt. Refuses a gap in `clientSeq`, and an attempt that does not own the event stream. */
  appendWorkerEvents(attempt: AttemptRef, events: readonly WorkerEvent[]): Promise<AppendOutcome>;
  /**
   * Returns the greatest `clientSeq` that was stored for the attempt, or undefined if the attempt does not own the
   * event stream.
   */
  ackedClientSeq(executionId: number, attempt: number): Promise<number | undefined>;
}

/** Runs `f` in one transaction, and again after a deadlock. */
export type InRunTransaction = <T>(f: (tx: RunTransaction) => Promise<T>) => Promise<T>;
