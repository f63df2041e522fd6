import { omitUndefined } from "@millwright/json";
import { actorOf, requireVerbAs, type Caller } from "@millwright/caller";
import { DomainError, isDomainError } from "@millwright/errors";
import { isBorrowable, workspaceMissing } from "../domain/borrowed-workspace.ts";
import { requiresNewRun, messageUidOf } from "../domain/followup.ts";
import { checkNewRun, type NewRun } from "../domain/new-run.ts";
import type { CapacityDefaults } from "../../catalog/domain/queue-settings.ts";
import type { KnownAgent } from "../../catalog/domain/resolved-agent.ts";
import { requireNothingReserved } from "../domain/reserved-requests.ts";
import { lifecycleOf } from "../domain/run-change.ts";
import { parentOf, type RunParent } from "../domain/run-parent.ts";
import type { RunRecord, CapacitySubject } from "../domain/run-record.ts";
import type { InRunTransaction, RunTransaction } from "../store/run-transaction.ts";
import type { Run } from "../domain/run.ts";
import { conversationBusy, lockNewest } from "./newest-run.ts";
import {
  keyOf,
  onceRequest,
  prepareRuns,
  type EarlierRun,
  type PreparedRun,
  type PrepareRunsDeps,
  type StoredResult,
} from "./prepare-runs.ts";
import { dropFiles } from "./run-files.ts";
import { startLocally } from "./start-locally.ts";
import { buildRunRecord } from "./build-run-record.ts";

export type CreateRunsDeps = PrepareRunsDeps & {
  readonly runs: InRunTransaction;
  /**
   * Batches concurrent transactions into one. Only for runs whose creation waits for no lock of another transaction.
   */
  readonly sharedRuns: InRunTransaction;
  findRun(uid: string): Promise<Run | undefined>;
  readonly capacityDefaults: CapacityDefaults;
};

export type Created = { readonly run: Run; readonly created: boolean; readonly atCapacity: boolean };

/**
 * Creates runs, all or none. Configurations are resolved first. Then one transaction writes the runs, queued
 * executions, prompts and events, and the responses that are returned again for the same idempotency keys. A cause
 * creates one run: a later request with the same cause returns that run, without a time limit. An agent that is known
 * is not resolved again.
 *
 * Errors: prompt_required, mode_unknown, metadata_invalid … (invalid_argument) · team_not_found · not_authorized ·
 * reserved_for_scoring, workspace_missing (invalid_argument) · conversation_not_found · parent_run_invalid,
 * depth_exceeded (invalid_argument) · idempotency_mismatch, factory_closed (conflict) · those of config resolution.
 */
export async function createRuns(
  deps: CreateRunsDeps,
  caller: Caller,
  requests: readonly NewRun[],
  knownAgent?: KnownAgent,
): Promise<Created[]> {
  for (const request of requests) {
    checkNewRun(request);
    requireNothingReserved(caller, request);
    requireVerbAs(caller, request.owner, "run.create", request.owner.type);
  }
  const prepared = await prepareRuns(deps, caller, requests, knownAgent);
  const inserted = new Map<string, Run>();
  const runs = prepared.every(waitsForNoLock) ? deps.sharedRuns : deps.runs;
  const results = await runs((tx) => write({ ...deps, tx, caller, inserted }, prepared)).catch(
    async (error: unknown) => {
      // After a DomainError nothing was committed. After any other error the transaction may have been committed.
      if (isDomainError(error)) await dropFiles(deps, prepared.flatMap(filesOf));
      throw error;
    },
  );
  await dropFiles(deps, prepared.filter((_run, n) => results[n]?.created === false).flatMap(filesOf));
  return Promise.all(
    results.map(async ({ uid, ...rest }) => ({ run: inserted.get(uid) ?? (await deps.findRun(uid))!, ...rest })),
  );
}

type Writing = Pick<CreateRunsDeps, "capacityDefaults"> & {
  readonly tx: RunTransaction;
  readonly caller: Caller;
  /** Receives the inserted runs, so that they need not be read again. */
  readonly inserted: Map<string, Run>;
};

/**
 * Returns whether the creation waits for no lock: the run has no parent, factory, cause, idempotency key or borrowed
 * workspace, and is not local.
 */
const waitsForNoLock = (run: PreparedRun | EarlierRun): boolean =>
  "request" in run &&
  !run.request.local &&
  !run.causeKey &&
  !run.request.idempotencyKey &&
  !run.request.parentRunUid &&
  !run.request.workspaceOfRunUid &&
  !run.resolved.frozen.factory_uid;

const filesOf = (run: PreparedRun | EarlierRun): PreparedRun["files"] => ("files" in run ? run.files : []);

/** Returns the runs to lock: the parent, and the run whose workspace the new run starts from. */
const lockedBy = ({ request: { parentRunUid, workspaceOfRunUid } }: PreparedRun): string[] =>
  [parentRunUid, workspaceOfRunUid].flatMap((uid) => uid?.toLowerCase() ?? []);

/** Inserts the requested runs in one statement, except that those with idempotency keys are inserted one by one. */
async function write(writing: Writing, prepared: readonly (PreparedRun | EarlierRun)[]): Promise<StoredResult[]> {
  const requested = prepared.filter((run) => "request" in run);
  const parents = await writing.tx.lockParents([...new Set(requested.flatMap(lockedBy))].toSorted());
  const results = new Map<PreparedRun, StoredResult>();
  const hasKey = ({ request }: PreparedRun): boolean => keyOf(writing.caller, request) !== undefined;
  for (const run of requested.filter(hasKey)) results.set(run, await writeOnce(writing, run, parents));
  const unkeyed = requested.filter((run) => !hasKey(run));
  for (const [n, result] of (await insert(writing, unkeyed, parents)).entries()) results.set(unkeyed[n]!, result);
  return prepared.map((run) => ("request" in run ? results.get(run)! : run.earlier));
}

/** Inserts a run, or returns the result of the earlier request with its idempotency key. */
async function writeOnce(writing: Writing, run: PreparedRun, parents: readonly RunParent[]): Promise<StoredResult> {
  let isNew = false;
  const result = await writing.tx.once(onceRequest(writing.caller, run.request), async () => {
    isNew = true;
    return (await insert(writing, [run], parents))[0]!;
  });
  return isNew ? result : { ...result, created: false };
}

/** Inserts runs in one statement. A run whose cause has created a run concurrently is not inserted. */
async function insert(
  writing: Writing,
  prepared: readonly PreparedRun[],
  parents: readonly RunParent[],
): Promise<StoredResult[]> {
  const { tx, caller } = writing;
  const records: RunRecord[] = [];
  for (const run of prepared) {
    const parent = parentOf(run.request, parents);
    if (run.request.workspaceOfRunUid) await requireWorkspace(tx, run, parents);
    records.push(buildRunRecord(caller, run, parent));
  }
  for (const uid of new Set(records.flatMap(({ factoryUid }) => factoryUid ?? []))) await requireFactoryOpen(tx, uid);
  for (const run of prepared) await requireConversationEnded(tx, run);
  const context = { actor: actorOf(caller), requestId: caller.requestId };
  const inserting = tx.insertRuns(records, context);
  const [inserted, atCapacity] = await Promise.all([inserting, ensureCapacities(writing, prepared, inserting)]);
  for (const run of inserted) writing.inserted.set(run.uid, run);
  for (const [n, { request, causeKey }] of prepared.entries()) {
    const { uid } = records[n]!;
    if (!request.local || !writing.inserted.delete(uid)) continue;
    await startLocally(tx, uid, request.local, { ...context, ...omitUndefined({ cause: causeKey }) });
  }
  const created = new Set(inserted.map(({ uid }) => uid));
  const skipped = records.filter(({ uid }) => !created.has(uid));
  const earlier = await tx.findByCauses(
    skipped.map(({ owner, causeKey }) => ({ ownerUid: owner.uid, causeKey: causeKey! })),
  );
  return records.map((record, n) =>
    created.has(record.uid)
      ? { uid: record.uid, created: true, atCapacity: atCapacity[n]! }
      : { uid: earlier[skipped.indexOf(record)]!, created: false, atCapacity: false },
  );
}

/** Stores the settings of the scopes whose capacity the runs use. Returns for each run whether a maximum is reached. */
async function ensureCapacities(
  { tx, capacityDefaults }: Writing,
  prepared: readonly PreparedRun[],
  before: Promise<unknown>,
): Promise<boolean[]> {
  const known = new Map<string, boolean>();
  const results: boolean[] = [];
  for (const { request, resolved } of prepared) {
    const { agent_uid: agentUid, factory_uid: factoryUid } = resolved.frozen;
    const subject: CapacitySubject = { owner: request.owner, agentUid, factoryUid };
    const key = JSON.stringify(subject);
    const isReached =
      known.get(key) ?? (await tx.ensureCapacity(subject, resolved.queueSettings, capacityDefaults, before));
    known.set(key, isReached);
    results.push(isReached);
  }
  return results;
}

async function requireFactoryOpen(tx: RunTransaction, factoryUid: string): Promise<void> {
  if (await tx.lockFactoryOpen(factoryUid)) return;
  throw new DomainError({
    kind: "conflict",
    reason: "factory_closed",
    message: "The factory is being deleted and accepts no new runs.",
  });
}

/**
 * Throws `conversation_busy` if the request continues a conversation whose current run has not ended, or to which its
 * cause has sent a message concurrently.
 */
async function requireConversationEnded(tx: RunTransaction, { request, conversationUid }: PreparedRun): Promise<void> {
  const { owner, causeKey, afterRunUid } = request;
  if (afterRunUid === undefined) return;
  const run = await lockNewest(tx, { conversationUid, owner }, afterRunUid);
  if (!run || !requiresNewRun(lifecycleOf(run).run)) throw conversationBusy();
  if (causeKey && (await tx.runOfMessage(messageUidOf(owner.uid, causeKey)))) throw conversationBusy();
}

/**
 * Checks under the lock that the run was not continued, and its workspace not deleted, since the configuration was
 * resolved. Errors: workspace_missing.
 */
async function requireWorkspace(
  tx: RunTransaction,
  { request, resolved }: PreparedRun,
  locked: readonly RunParent[],
): Promise<void> {
  const source = locked.find(({ uid }) => uid === request.workspaceOfRunUid?.toLowerCase());
  const key = resolved.frozen.workspace?.snapshot_key;
  if (!source || !isBorrowable(source, request.owner) || (key !== undefined && !(await tx.isSnapshotStored(key))))
    throw workspaceMissing();
}
