import { AsyncLocalStorage } from "node:async_hooks";
import { Batcher, isTransient, sendTo, type Database, type Sql } from "@millwright/database";
import type { RunUid } from "@millwright/ids";
import type { LockedRun } from "../domain/run-change.ts";
import type { LossPolicy } from "../../catalog/domain/agent-config.ts";
import type { InRunTransaction, RunTransaction } from "../domain/run-transaction.ts";
import type { SandboxShape } from "../domain/sandbox-shape.ts";
import type { Timings } from "../domain/timings.ts";
import { ensureCapacity } from "./capacity-store.ts";
import { lockFactoryOpen } from "./closed-factory-store.ts";
import { findByCauses, lockConversation, insertRuns, lockParents } from "./create-store.ts";
import { markReported, unreportedChildren } from "./children-store.ts";
import { offerToClient } from "./local-run-store.ts";
import { liveDescendants, lockRuns, runOfExecution } from "./locked-runs.ts";
import { once } from "../../storage/store/idempotency-store.ts";
import { storeOfferToken } from "./offer-token-store.ts";
import { takeOverDirectives } from "./directive-store.ts";
import {
  addMessage,
  countUndeliveredTextBytes,
  dropUndeliveredFollowups,
  dropUndeliveredFollowupsOf,
  earlierAttachments,
  hasUndeliveredDirectives,
  inputsOf,
  markDelivered,
  runOfMessage,
  assignInputs,
  unassignMessages,
} from "./message-store.ts";
import { appendRunEvents, appendWorkerEvents } from "./run-events-store.ts";
import { RUNS_OF_CONVERSATION } from "./run-store.ts";
import { snapshotStore } from "./snapshot-store.ts";
import { saveChanges } from "./save-changes.ts";
import { isSnapshotStored } from "./workspace-store.ts";

/** Runs transactions over runs. The lock order rules out deadlocks between this service's own statements. */
export const runTransactions =
  (database: Database, timings: Timings): InRunTransaction =>
  (f) =>
    database.transaction((sql) => f(bind(sql, timings)));

/**
 * Batches concurrent transactions into one: a single commit for all parts, and no part waits for the statements of
 * another. Only for parts that take no lock which another part takes. If the outcome is unknown, no part is retried.
 */
export function sharedRunTransactions(runs: InRunTransaction): InRunTransaction {
  type Part = (tx: RunTransaction) => Promise<unknown>;
  const parts = new Batcher(
    (batch: readonly Part[]) => runs((tx) => Promise.all(batch.map((part) => part(tx)))),
    (error) => !isTransient(error),
  );
  // Each part runs in the async context of its own request.
  return async <T>(f: (tx: RunTransaction) => Promise<T>) => (await parts.add(AsyncLocalStorage.bind(f))) as T;
}

const bind = (sql: Sql, timings: Timings): RunTransaction => ({
  once: (request, f) => once(sql, request, f),
  lockRuns: (uids, executionIds) => lockRuns(sql, uids, executionIds),
  lockParents: (uids) => lockParents(sql, uids),
  lockFactoryOpen: (factoryUid) => lockFactoryOpen(sql, factoryUid),
  insertRuns: (records, context) => insertRuns(sql, records, context),
  offerToClient: (runUid, clientUid) => offerToClient(sql, runUid, clientUid, timings.leaseTtlMs),
  findByCauses: (causes) => findByCauses(sql, causes),
  lockConversation: (conversation) => lockConversation(sql, conversation),
  runOfMessage: (messageUid) => runOfMessage(sql, messageUid),
  ensureCapacity: (subject, settings, defaults, before) => ensureCapacity(sql, subject, settings, defaults, before),
  runOfExecution: (executionId) => runOfExecution(sql, executionId),
  parentOf: (runUid) => parentOf(sql, runUid),
  liveDescendants: (runUid) => liveDescendants(sql, runUid),
  save: (changes, context) => saveChanges(sql, changes, context, timings),
  appendRunEvents: (runUid, events) => appendRunEvents(sql, runUid, events),
  addMessage: (message) => addMessage(sql, message),
  countUndeliveredTextBytes: (runUid) => countUndeliveredTextBytes(sql, runUid),
  assignInputs: (runUid, executionId) => assignInputs(sql, runUid, executionId),
  inputsOf: (runUid, executionId) => inputsOf(sql, runUid, executionId),
  earlierAttachments: (run) => earlierAttachments(sql, run),
  takeOverDirectives: (executionId, attempt) => takeOverDirectives(sql, executionId, attempt),
  workspaceOf: (run, executionId) => workspaceOf(sql, run, executionId),
  isSnapshotStored: (key) => isSnapshotStored(sql, key),
  ownsSnapshot: (key, executionId) => snapshotStore.belongsTo(sql, key, executionId),
  setCheckpoint: (executionId, key) => setCheckpoint(sql, executionId, key),
  deleteOtherSnapshots: (executionId, key) => deleteOtherSnapshots(sql, executionId, key),
  onWorkerLoss: (runUid) => onWorkerLoss(sql, runUid),
  debugWindowMs: (runUid) => debugWindowMs(sql, runUid, timings),
  leaseExpiry: (executionId) => leaseExpiry(sql, executionId),
  storeOfferToken: (sessionUid, lease, token) => storeOfferToken(sql, sessionUid, lease, token),
  hasUndeliveredDirectives: (runUid, executionId) => hasUndeliveredDirectives(sql, runUid, executionId),
  unassignMessages: (runUid, executionId) => unassignMessages(sql, runUid, executionId),
  dropUndeliveredFollowups: (runUid, reason, stopping) => dropUndeliveredFollowups(sql, runUid, reason, stopping),
  dropUndeliveredFollowupsOf: (runUid, reason, executionId, takenAs) =>
    dropUndeliveredFollowupsOf(sql, runUid, reason, executionId, takenAs),
  unreportedChildren: (parentUid, named) => unreportedChildren(sql, parentUid, named),
  markReported: (parentUid, children) => markReported(sql, parentUid, children),
  markDelivered: (runUid, uids) => markDelivered(sql, runUid, uids),
  setSandboxRunning: (executionId, isRunning) => setSandboxRunning(sql, executionId, isRunning),
  setSandboxShape: (executionId, shape) => setSandboxShape(sql, executionId, shape),
  markStallWarned: (executionId) => markStallWarned(sql, executionId),
  appendWorkerEvents: (attempt, events) => appendWorkerEvents(sql, attempt, events),
  ackedClientSeq: (executionId, attempt) => ackedClientSeq(sql, executionId, attempt),
});

async function parentOf(sql: Sql, runUid: string): Promise<RunUid | undefined> {
  const { rows } = await sql.query<{ parent: RunUid | null }>(
    "SELECT parent_run_uid AS parent FROM runs WHERE uid = $1",
    [runUid],
  );
  return rows[0]?.parent ?? undefined;
}

async function ackedClientSeq(sql: Sql, executionId: number, attempt: number): Promise<number | undefined> {
  const { rows } = await sql.query<{ acked: number }>(
    "SELECT s.last_client_seq AS acked FROM executions x JOIN run_streams s ON s.run_uid = x.run_uid AND s.execution_id = x.id WHERE x.id = $1 AND s.attempt = $2",
    [executionId, attempt],
  );
  return rows[0]?.acked;
}

async function setSandboxRunning(sql: Sql, executionId: number, isRunning: boolean): Promise<void> {
  await sql.query("UPDATE executions SET sandbox_running = $2 WHERE id = $1 AND state <> 'ENDED'", [
    executionId,
    isRunning,
  ]);
}

async function setSandboxShape(tx: Sql, executionId: number, { vcpus, memoryGb }: SandboxShape): Promise<void> {
  await sendTo(tx, "UPDATE executions SET sandbox_vcpus = $2, sandbox_memory_gb = $3 WHERE id = $1", [
    executionId,
    vcpus,
    memoryGb,
  ]);
}

/**
 * Returns the newest workspace of a conversation, up to an execution. For an execution that ended without a final
 * snapshot, this is its newest checkpoint.
 */
async function workspaceOf(
  sql: Sql,
  { conversationUid, owner }: Pick<LockedRun, "conversationUid" | "owner">,
  executionId: number,
): Promise<string | undefined> {
  const { rows } = await sql.query<{ key: string }>(
    `SELECT coalesce(x.snapshot_key, x.checkpoint_key) AS key FROM executions x JOIN ${RUNS_OF_CONVERSATION} r ON r.uid = x.run_uid
      WHERE r.owner_type = $2 AND r.owner_uid = $3 AND x.id <= $4 AND coalesce(x.snapshot_key, x.checkpoint_key) IS NOT NULL
      ORDER BY x.id DESC LIMIT 1`,
    [conversationUid, owner.type, owner.uid, executionId],
  );
  return rows[0]?.key;
}

async function setCheckpoint(tx: Sql, executionId: number, key: string): Promise<void> {
  await tx.query("UPDATE executions SET checkpoint_key = $2 WHERE id = $1", [executionId, key]);
  await snapshotStore.deleteOthers(tx, key, executionId);
}

async function deleteOtherSnapshots(tx: Sql, executionId: number, key: string): Promise<void> {
  await tx.query("UPDATE executions SET checkpoint_key = NULL WHERE id = $1 AND checkpoint_key <> $2", [
    executionId,
    key,
  ]);
  await snapshotStore.deleteOthers(tx, key, executionId);
}

async function onWorkerLoss(sql: Sql, runUid: string): Promise<LossPolicy> {
  const { rows } = await sql.query<{ policy: string | null }>(
    "SELECT frozen->>'on_worker_loss' AS policy FROM runs WHERE uid = $1",
    [runUid],
  );
  return rows[0]?.policy === "fail" ? "fail" : "resume";
}

async function debugWindowMs(sql: Sql, runUid: string, { debugMinuteMs }: Timings): Promise<number> {
  const { rows } = await sql.query<{ minutes: number }>(
    "SELECT coalesce((frozen->>'failure_session_retention_minutes')::float8, 0) AS minutes FROM runs WHERE uid = $1",
    [runUid],
  );
  return Math.round((rows[0]?.minutes ?? 0) * debugMinuteMs);
}

async function leaseExpiry(sql: Sql, executionId: number): Promise<Date> {
  const { rows } = await sql.query<{ at: Date }>("SELECT expires_at AS at FROM leases WHERE execution_id = $1", [
    executionId,
  ]);
  if (!rows[0]) throw new Error("an accepted execution has a lease");
  return rows[0].at;
}

async function markStallWarned(sql: Sql, executionId: number): Promise<void> {
  await sql.query("UPDATE executions SET stall_warned_at = clock_timestamp() WHERE id = $1", [executionId]);
}
