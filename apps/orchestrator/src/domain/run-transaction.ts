import type { RunUid } from "@millwright/ids";
import type { Directive } from "./directive.ts";
import type { Attachment, Message, NewMessage } from "./message.ts";
import type { CapacityDefaults, ScopeSettings } from "./queue-settings.ts";
import type { ChangeContext, LockedRun, RunChange } from "./run-change.ts";
import type { RunRecord } from "./run-record.ts";
import type { Owner, Run, RunState } from "./run.ts";
import type { NewRunEvent, WorkerEvent } from "./run-events.ts";
import type { LossPolicy } from "./run-state.ts";
import type { SandboxShape } from "./sandbox-shape.ts";
import type { Child } from "./wait.ts";

/** An attempt of an execution, with its run. */
export type AttemptRef = { readonly runUid: string; readonly executionId: number; readonly attempt: number };

export type AppendOutcome =
  | { readonly outcome: "appended"; readonly ackedClientSeq: number; readonly lastSeq: number }
  | { readonly outcome: "gap"; readonly ackedClientSeq: number }
  | { readonly outcome: "lease_lost" };

/** A parent as its children's creation needs it. */
export type RunParent = {
  readonly uid: RunUid;
  readonly rootRunUid: RunUid;
  readonly depth: number;
  readonly state: RunState;
  readonly owner: Owner;
  readonly metadata: Readonly<Record<string, string>>;
  /** It, or a run above it, has a cost limit. */
  readonly isCostLimited?: boolean;
};

/** Whose capacity an execution uses. */
export type CapacitySubject = {
  readonly owner: Owner;
  readonly agentUid?: string | undefined;
  readonly factoryUid?: string | undefined;
};

/** What makes a request the same as an earlier one. */
export type OnceRequest = {
  readonly principalUid: string;
  readonly operation: string;
  /** Absent: every call is its own. */
  readonly key: string | undefined;
  /** JSON; another body with the same key is refused. */
  readonly body: unknown;
};

export type RunOfExecution = { readonly uid: RunUid; readonly parentRunUid?: RunUid };

/** What a use case can do to runs inside one transaction; the store implements it. */
export interface RunTransaction {
  /**
   * Runs `f` once per principal, operation and key; later calls get its (JSON) answer. Comes before any lock.
   * Errors: idempotency_mismatch (conflict).
   */
  once<T>(request: OnceRequest, f: () => Promise<T>): Promise<T>;
  /** Locks runs in uid order and reads them, each with its newest execution or with one of those named. Absent runs are left out. */
  lockRuns(uids: readonly string[], executionIds?: readonly number[]): Promise<LockedRun[]>;
  /** Locks runs in uid order: parents against ending while they get children, others against the loss of the workspace they left. */
  lockParents(uids: readonly string[]): Promise<RunParent[]>;
  /** Keeps a factory from being closed until the transaction ends. False: it is closed, and gets no runs. */
  holdFactoryOpen(factoryUid: string): Promise<boolean>;
  /** Inserts a run, queued. Undefined, and nothing inserted, when its cause has made one already. */
  insertRun(run: RunRecord, context: ChangeContext): Promise<Run | undefined>;
  /** Inserts runs that causes make, each with its cause, in one statement; answers those that are new. None has files. */
  insertRuns(runs: readonly RunRecord[], context: ChangeContext): Promise<Run[]>;
  /** Opens the offer of a new run's execution to the client that executes it, before any worker sees it; answers the execution. */
  holdForClient(runUid: string, clientUid: string): Promise<number>;
  findByCause(ownerUid: string, causeKey: string): Promise<RunUid | undefined>;
  /** Locks the conversation until the transaction ends; comes before locks of its runs. Returns the owner's current (newest top-level) run in it. */
  holdConversation(place: Pick<LockedRun, "conversationUid" | "owner">): Promise<RunUid | undefined>;
  /** The run to which a message was given. */
  runOfMessage(messageUid: string): Promise<RunUid | undefined>;
  /** Adopts the settings (not before `before`, which takes the locks that come first), and answers whether a maximum is reached now. */
  ensureCapacity(
    subject: CapacitySubject,
    settings: ScopeSettings,
    defaults: CapacityDefaults,
    before: Promise<unknown>,
  ): Promise<boolean>;
  /** Read without a lock: neither ever changes. */
  runOfExecution(executionId: number): Promise<RunOfExecution | undefined>;
  parentOf(runUid: string): Promise<RunUid | undefined>;
  /** Live runs below a run, at any depth, and those of which a debug window is open. */
  liveDescendants(runUid: string): Promise<RunUid[]>;
  /** Saves changes of locked runs, with their events. */
  save(changes: readonly RunChange[], context: ChangeContext): Promise<void>;
  appendRunEvents(runUid: string, events: readonly NewRunEvent[]): Promise<void>;

  addMessage(message: NewMessage): Promise<void>;
  /** Bytes of the prompt and the follow-ups that the run's agent has not received yet. */
  countUnseenTextBytes(runUid: string): Promise<number>;
  /** Gives everything the agent has not seen to the execution that is being accepted; oldest first. */
  takeInputs(runUid: string, executionId: number): Promise<Message[]>;
  /** What an execution was given when it was accepted. */
  inputsOf(runUid: string, executionId: number): Promise<Message[]>;
  /** Files of messages that agents have been handed in the conversation of a run, by runs that have the same owner; oldest first. */
  earlierAttachments(run: Pick<LockedRun, "conversationUid" | "owner">): Promise<Attachment[]>;
  /** What a lost attempt was told and had not taken, and the present one shall take; the same however often it is asked. */
  takeOverDirectives(executionId: number, attempt: number): Promise<Directive[]>;
  /** The workspace to begin with: the execution's own checkpoint, else the newest saved before it by the runs of its conversation that have the same owner. */
  workspaceOf(run: Pick<LockedRun, "conversationUid" | "owner">, executionId: number): Promise<string | undefined>;
  /** Whether a snapshot of some run is still stored. */
  isSnapshotStored(key: string): Promise<boolean>;
  /** Whether an execution was given this place to save its workspace. */
  ownsSnapshot(key: string, executionId: number): Promise<boolean>;
  /** This is the execution's newest workspace between steps; older ones are deleted. */
  setCheckpoint(executionId: number, key: string): Promise<void>;
  /** The only workspace of an execution that is of use from now on. */
  keepOnlySnapshot(executionId: number, key: string): Promise<void>;
  /** What the agent's configuration wants when its worker is lost. */
  onWorkerLoss(runUid: string): Promise<LossPolicy>;
  /** For how long a worker keeps what a failed setup of the run has left; 0: not at all. */
  debugWindowMs(runUid: string): Promise<number>;
  leaseExpiry(executionId: number): Promise<Date>;
  /** Opens an accepted lease of a session to whoever brings the token; an earlier token is dead. */
  openToOffer(
    sessionUid: string,
    lease: { readonly executionId: number; readonly attempt: number },
    token: string,
  ): Promise<void>;
  hasUnseenDirectives(runUid: string, executionId: number): Promise<boolean>;
  /** An attempt was lost: what its agent has not seen is told to the next one. */
  untakeMessages(runUid: string, executionId: number): Promise<void>;
  /**
   * The run has ended: unseen follow-ups are given up. Those that were given to an execution which is stopping (or, `stopping`,
   * about to) are not: its worker may have handed them over already and say so yet. Returns their uids.
   */
  dropUnseenFollowups(runUid: string, reason: string, stopping?: number): Promise<string[]>;
  /** An execution is gone: what it was given (in one way, when named) and did not hand over is given up. Returns the uids of follow-ups. */
  dropUnseenFollowupsOf(runUid: string, reason: string, executionId: number, takenAs?: "input"): Promise<string[]>;

  /** Children whose latest end the (locked) parent has not been told; only those named, when any are. */
  unreportedChildren(parentUid: string, named?: readonly string[]): Promise<Child[]>;
  markReported(parentUid: string, children: readonly Child[]): Promise<void>;

  /** Notes that the agent has been handed these messages. */
  markDelivered(runUid: string, messageUids: readonly string[]): Promise<void>;
  setSandboxRunning(executionId: number, isRunning: boolean): Promise<void>;
  /** Records the limits of the sandbox in which the current attempt works. */
  setSandboxShape(executionId: number, shape: SandboxShape): Promise<void>;
  /** Notes that the silence of an execution was reported. */
  markStallWarned(executionId: number): Promise<void>;
  /** Adds events of an attempt; refuses a gap and an attempt that does not hold the stream. */
  appendWorkerEvents(attempt: AttemptRef, events: readonly WorkerEvent[]): Promise<AppendOutcome>;
  /** The newest seq that the attempt of an execution may not send again; undefined when it does not hold the stream. */
  ackedClientSeq(executionId: number, attempt: number): Promise<number | undefined>;
}

/** Runs `f` in one transaction, again when it lost a deadlock. */
export type InRunTransaction = <T>(f: (tx: RunTransaction) => Promise<T>) => Promise<T>;
