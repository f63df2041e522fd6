import { DomainError } from "@millwright/errors";
import type { RunUid } from "@millwright/ids";
import type { LockedExecution, LockedRun, RunOfExecution } from "../../src/runs/domain/run-change.ts";
import type { NewRunEvent } from "../../src/runs/domain/run-events.ts";
import type { RunRecord } from "../../src/runs/domain/run-record.ts";
import type { RunTransaction } from "../../src/runs/store/run-transaction.ts";
import { isTerminal, type Run } from "../../src/runs/domain/run.ts";
import { ensureCapacity, laneOf } from "./memory-queue.ts";
import { saveChange } from "./memory-save.ts";
import { directiveOf, type ExecutionRow, type MessageRow, type Rows, type RunRow } from "./rows.ts";

/**
 * Applies the operations of the SQL store to tables in memory. This independent implementation is compared with the
 * store.
 */
export const memoryTransaction = (rows: Rows): RunTransaction => ({
  async once({ principalUid, operation, key, body }, f) {
    if (!key) return f();
    const name = `${principalUid} ${operation} ${key}`;
    const earlier = rows.answers.get(name);
    if (!earlier) return rows.answers.put(name, { body: JSON.stringify(body), answer: await f() }).answer as never;
    if (earlier.body !== JSON.stringify(body))
      throw new DomainError({ kind: "conflict", reason: "idempotency_mismatch", message: "Other body." });
    return earlier.answer as never;
  },
  async lockRuns(uids, executionIds = []) {
    return [...new Set(uids)].toSorted().flatMap((uid) => lockedRun(rows, uid, executionIds) ?? []);
  },
  async lockParents(uids) {
    return uids.flatMap((uid) => {
      const run = rows.runs.get(uid);
      if (!run) return [];
      const { rootRunUid, depth, owner, metadata } = run.record;
      return [{ uid: uid as RunUid, rootRunUid, depth, owner, metadata, state: run.state }];
    });
  },
  lockFactoryOpen: async () => true,
  insertRuns: async (records) => records.flatMap((record) => insertRun(rows, record) ?? []),
  offerToClient: async () => {
    throw new Error("local runs are not simulated");
  },
  findByCauses: async (causes) => causes.map(({ ownerUid, causeKey }) => findByCause(rows, ownerUid, causeKey)),
  lockConversation: async ({ conversationUid, owner }) => {
    const isOwned = ({ record }: RunRow): boolean =>
      record.conversationUid === conversationUid && record.owner.type === owner.type && record.owner.uid === owner.uid;
    const owned = rows.runs.all().filter(isOwned);
    return (owned.findLast(({ record }) => !record.parentRunUid) ?? owned.at(-1))?.record.uid;
  },
  countUndeliveredTextBytes: async (runUid) =>
    unseen(rows, runUid)
      .filter(({ kind }) => kind !== "children")
      .reduce((sum, { text }) => sum + Buffer.byteLength(text), 0),
  runOfMessage: async (messageUid) => rows.messages.get(messageUid)?.runUid as RunUid | undefined,
  async ensureCapacity(subject, settings, defaults, before) {
    await before;
    return ensureCapacity(rows, subject, settings, defaults);
  },
  runOfExecution: async (executionId) => runOfExecution(rows, executionId),
  runsOfExecutions: async (executionIds) => runsOfExecutions(rows, executionIds),
  parentOf: async (runUid) => rows.runs.get(runUid)?.record.parentRunUid,
  liveDescendants: async (runUid) =>
    descendants(rows, runUid)
      .filter(
        ({ state, record: { uid } }) =>
          !isTerminal(state) || rows.executionsOf(uid).some((execution) => execution.state === "DEBUG"),
      )
      .map(({ record }) => record.uid),
  async saveChanges(changes) {
    for (const change of changes) saveChange(rows, change);
  },
  appendRunEvents: async (runUid, events) => appendEvents(rows, runUid, events),

  async addMessage(given) {
    const { directiveTo, author: _, ...message } = given;
    addMessage(rows, {
      ...message,
      executionId: directiveTo,
      takenAs: directiveTo === undefined ? undefined : "directive",
    });
  },
  assignInputs: async (accepted) =>
    new Map(
      accepted.map(({ runUid, executionId }) => [
        executionId,
        unseen(rows, runUid).map(({ uid }) => toMessage(rows.messages.patch(uid, { executionId, takenAs: "input" }))),
      ]),
    ),
  async inputsOf(runUid, executionId) {
    const { attempt } = rows.executions.get(executionId)!;
    return rows
      .messagesOf(runUid)
      .filter(
        (message) =>
          message.executionId === executionId &&
          message.takenAs === "input" &&
          (message.deliveredAttempt ?? attempt) === attempt,
      )
      .map(toMessage);
  },
  // Workspaces and attachments are not simulated: no worker saves one.
  readClaimedExecutions: async (runs) =>
    new Map(
      runs.map(({ execution }) => [
        execution.id,
        { leaseExpiresAt: new Date(0), snapshotKey: undefined, earlierAttachments: [] },
      ]),
    ),
  async takeOverDirectives(executionId, attempt) {
    const left = rows.directives
      .all()
      .filter(
        (directive) => directive.executionId === executionId && directive.kind === "interrupt" && !directive.isAcked,
      )
      .toSorted((a, b) => a.seq - b.seq);
    for (const { seq } of left) rows.directives.patch(`${executionId} ${seq}`, { attempt });
    return left.map((row) => directiveOf(rows, { ...row, attempt }));
  },
  isSnapshotStored: async () => false,
  ownsSnapshot: async () => false,
  setCheckpoint: async () => {},
  deleteOtherSnapshots: async () => {},
  onWorkerLoss: async () => "resume",
  debugWindowMs: async (runUid) =>
    (rows.runs.get(runUid)!.record.frozen.failure_session_retention_minutes ?? 0) * 60_000,
  storeOfferToken: async () => {},
  async unassignMessages(runUid, executionId) {
    for (const { executionId: _, takenAs: _as, ...rest } of rows
      .messagesOf(runUid)
      .filter((message) => message.executionId === executionId && !message.isDelivered))
      rows.messages.put(rest.uid, rest);
  },
  async dropUndeliveredFollowups(runUid, _reason, stopping) {
    const isExecuting = (executionId: number) =>
      executionId === stopping || ["STOPPING", "DEBUG"].includes(rows.executions.get(executionId)!.state);
    return giveUp(rows, runUid, ({ executionId }) => executionId === undefined || !isExecuting(executionId));
  },
  dropUndeliveredFollowupsOf: async (runUid, _reason, executionId, takenAs) =>
    giveUp(
      rows,
      runUid,
      (message) => message.executionId === executionId && (takenAs === undefined || message.takenAs === takenAs),
    ),

  async unreportedChildren(parentUid, named = []) {
    const isNew = ({ record, executionCount }: RunRow) =>
      (rows.reported.get(`${parentUid} ${record.uid}`)?.executionCount ?? 0) < executionCount;
    return rows
      .childrenOf(parentUid)
      .filter((child) => isNew(child) && (named.length === 0 || named.includes(child.record.uid)))
      .map(({ record: { uid, title }, state, status }) => ({
        uid,
        title,
        state,
        message: status?.message,
      }));
  },
  async markReported(parentUid, children) {
    for (const { uid } of children)
      rows.reported.put(`${parentUid} ${uid}`, { executionCount: rows.runs.get(uid)!.executionCount });
  },

  async markDelivered(runUid, uids) {
    for (const { uid, isDelivered, executionId = 0 } of rows.messagesOf(runUid)) {
      if (!isDelivered && uids.includes(uid))
        rows.messages.patch(uid, { isDelivered: true, deliveredAttempt: rows.executions.get(executionId)!.attempt });
    }
  },
  setSandboxRunning: async () => {},
  setSandboxShape: async () => {},
  markStallWarned: async () => {},
  async appendWorkerEvents({ runUid, executionId, attempt }, events) {
    const stream = rows.streams.get(runUid);
    if (stream?.executionId !== executionId || stream.attempt !== attempt) return { outcome: "lease_lost" };
    const fresh = events.filter(({ clientSeq }) => clientSeq > stream.lastClientSeq);
    if (!fresh.every(({ clientSeq }, n) => clientSeq === stream.lastClientSeq + n + 1))
      return { outcome: "gap", ackedClientSeq: stream.lastClientSeq };
    const ackedClientSeq = stream.lastClientSeq + fresh.length;
    for (const [n, { kind, payload }] of fresh.entries())
      rows.events.put(`${runUid} ${stream.lastSeq + n + 1}`, {
        runUid,
        seq: stream.lastSeq + n + 1,
        kind,
        payload,
        executionId,
        attempt,
      });
    const { lastSeq } = rows.streams.put(runUid, {
      ...stream,
      lastSeq: stream.lastSeq + fresh.length,
      lastClientSeq: ackedClientSeq,
    });
    return { outcome: "appended", ackedClientSeq, lastSeq };
  },
});

/** Inserts a run, unless its cause has created one already. */
function insertRun(rows: Rows, record: RunRecord): Run | undefined {
  if (record.causeKey !== undefined && findByCause(rows, record.owner.uid, record.causeKey)) return undefined;
  const { submittedPrompt } = record;
  rows.runs.put(record.uid, {
    record,
    state: "QUEUED",
    hasStarted: false,
    executionCount: 1,
    submittedPrompt,
  });
  queueExecution(rows, record.uid, 1);
  rows.streams.put(record.uid, { lastSeq: 0, lastClientSeq: 0 });
  appendEvents(rows, record.uid, [{ kind: "run_created", payload: {} }]);
  if (record.message)
    addMessage(rows, {
      uid: record.message.uid,
      runUid: record.uid,
      kind: "prompt",
      text: record.message.text,
      mode: record.mode,
    });
  return viewOf(rows.runs.get(record.uid)!);
}

/** Returns the run as the API reads it, limited to the properties that the use cases read. */
export const viewOf = ({ record, state, status }: RunRow): Run =>
  ({ ...record, state, executionLocation: "REMOTE", status }) as unknown as Run;

export const findByCause = (rows: Rows, ownerUid: string, causeKey: string): RunUid | undefined =>
  rows.runs.all().find(({ record }) => record.owner.uid === ownerUid && record.causeKey === causeKey)?.record.uid;

export function appendEvents(rows: Rows, runUid: string, events: readonly NewRunEvent[]): void {
  const stream = rows.streams.get(runUid)!;
  for (const [n, event] of events.entries())
    rows.events.put(`${runUid} ${stream.lastSeq + n + 1}`, { ...event, runUid, seq: stream.lastSeq + n + 1 });
  rows.streams.put(runUid, { ...stream, lastSeq: stream.lastSeq + events.length });
}

export function queueExecution(rows: Rows, runUid: string, seq: number): void {
  const id = rows.nextExecutionId();
  rows.executions.put(id, {
    id,
    runUid,
    seq,
    state: "QUEUED",
    attempt: 0,
    acceptedAttempt: 0,
    retainedAttempts: [],
    setupLosses: 0,
    runLosses: 0,
    lane: laneOf(rows.runs.get(runUid)!.record),
  });
}

const descendants = (rows: Rows, runUid: string): RunRow[] =>
  rows.childrenOf(runUid).flatMap((child) => [child, ...descendants(rows, child.record.uid)]);
const unseen = (rows: Rows, runUid: string): MessageRow[] =>
  rows.messagesOf(runUid).filter((message) => !message.isDelivered && !message.isUndeliverable);
const giveUp = (rows: Rows, runUid: string, which: (message: MessageRow) => boolean): string[] =>
  unseen(rows, runUid)
    .filter((message) => message.kind === "followup" && which(message))
    .map(({ uid }) => rows.messages.patch(uid, { isUndeliverable: true }).uid);
const toMessage = ({ uid, kind, text, mode }: MessageRow) => ({ uid, kind, text, mode, attachments: [] });

function addMessage(rows: Rows, message: Omit<MessageRow, "seq" | "isDelivered" | "isUndeliverable">): void {
  rows.messages.put(message.uid, {
    ...message,
    seq: rows.messagesOf(message.runUid).length + 1,
    isDelivered: false,
    isUndeliverable: false,
  });
}

function runOfExecution(rows: Rows, executionId: number): RunOfExecution | undefined {
  const record = rows.runs.get(rows.executions.get(executionId)?.runUid ?? "")?.record;
  return record && { uid: record.uid, parentRunUid: record.parentRunUid };
}

export const runsOfExecutions = (rows: Rows, executionIds: readonly number[]): Map<number, RunOfExecution> =>
  new Map(
    executionIds.flatMap((id): [number, RunOfExecution][] => {
      const ref = runOfExecution(rows, id);
      return ref ? [[id, ref]] : [];
    }),
  );

function lockedRun(rows: Rows, uid: string, executionIds: readonly number[]): LockedRun | undefined {
  const run = rows.runs.get(uid);
  if (!run) return undefined;
  const { parentRunUid, frozen, conversationUid, rootRunUid, owner, depth, title, source } = run.record;
  const executions = rows.executionsOf(uid);
  const wait = rows.waits.get(uid);
  return {
    uid: run.record.uid,
    version: 1,
    rootRunUid,
    owner,
    conversationUid,
    depth,
    title,
    source,
    state: run.state,
    executionLocation: "REMOTE",
    hasStarted: run.hasStarted,
    parentRunUid,
    agentUid: frozen.agent_uid,
    factoryUid: frozen.factory_uid,
    statusMessage: run.status?.message,
    submittedPrompt: run.submittedPrompt,
    wait,
    hasUndeliveredFollowups: unseen(rows, uid).some(({ kind }) => kind === "followup"),
    execution: lockedExecution(rows, executions.find(({ id }) => executionIds.includes(id)) ?? executions.at(-1)!),
  };
}

function lockedExecution(
  rows: Rows,
  { id, runUid, seq, state, attempt, outcome, setupLosses, runLosses, retainedAttempts, workerHost }: ExecutionRow,
): LockedExecution {
  const lease = rows.leases.get(id);
  const stream = rows.streams.get(runUid);
  return {
    id,
    seq,
    state,
    attempt,
    setupLosses,
    runLosses,
    laneId: 0,
    wasStarted: retainedAttempts.length > 0,
    ackedClientSeq: stream?.executionId === id && stream.attempt === attempt ? stream.lastClientSeq : undefined,
    hasUndeliveredDirectives: unseen(rows, runUid).some(
      (message) => message.executionId === id && message.takenAs === "directive",
    ),
    staleWindow: state === "DEBUG" && (lease?.isExpired || lease?.isFenced) ? "worker_lost" : undefined,
    outcome,
    workerHost,
    lease: lease && {
      sessionUid: lease.sessionUid,
      attempt: lease.attempt,
      isAccepted: lease.isAccepted,
      isExpired: lease.isExpired || lease.isFenced,
      leftMs: lease.isExpired ? 0 : 1_000,
      lapsedMs: 0,
    },
  };
}
