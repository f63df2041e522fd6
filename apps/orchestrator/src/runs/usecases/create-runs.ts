import type { Caller } from "@millwright/caller";
import { actorOf, requireVerbAs } from "@millwright/caller";
import { DomainError, invalidArgument, isDomainError, notFound } from "@millwright/errors";
import { newUid, type ConversationUid, type RunUid } from "@millwright/ids";
import { borrow, isBorrowable, workspaceMissing, type LeftWorkspace } from "../domain/borrowed-workspace.ts";
import { isOver, messageUidOf } from "../domain/followup.ts";
import type { Attachment } from "../domain/message.ts";
import { checkMetadata, checkNewRun, modeOf, titleOf, type NewRun } from "../domain/new-run.ts";
import type { CapacityDefaults } from "../../catalog/domain/queue-settings.ts";
import { requireNothingReserved } from "../domain/reserved-requests.ts";
import type { ResolvedRun, ResolveRunRequest } from "../domain/resolved-run.ts";
import type { RunParent, InRunTransaction, RunTransaction } from "../domain/run-transaction.ts";
import { lifeOf, type LockedRun } from "../domain/run-change.ts";
import type { RunRecord } from "../domain/run-record.ts";
import { TRIAL_SOURCE, type TrialSettings } from "../domain/trial-settings.ts";
import { DEPTH_MAX, isTerminal, type Run } from "../domain/run.ts";
import { storable, storableJson } from "../domain/text.ts";
import { startLocally } from "./start-locally.ts";
import { dropFiles, storeFiles, type RunFilesDeps } from "./run-files.ts";

export type CreateRunsDeps = RunFilesDeps & {
  readonly runs: InRunTransaction;
  /**
   * Batches concurrent transactions into one. Only for runs whose creation waits for no lock of another transaction.
   */
  readonly sharedRuns: InRunTransaction;
  /**
   * Resolves a configuration. Errors: agent_not_found, environment_not_found, model_unknown, config_conflict and others
   * of resolve-run.
   */
  resolveRun(caller: Caller, request: ResolveRunRequest): Promise<ResolvedRun>;
  findVisibleRun(caller: Caller, uid: string): Promise<Run | undefined>;
  /** Returns the workspace that a run left, regardless of the caller. */
  findLeftWorkspace(runUid: string): Promise<LeftWorkspace | undefined>;
  /** Returns the settings that a run below a benchmark trial inherits from it. */
  findTrialSettings(runUid: string): Promise<TrialSettings | undefined>;
  findNewestOfConversation(caller: Caller, conversationUid: string): Promise<Run | undefined>;
  /** Returns the runs that causes have created already, in the order of the causes. */
  findByCauses(
    causes: readonly { readonly ownerUid: string; readonly causeKey: string }[],
  ): Promise<readonly (RunUid | undefined)[]>;
  getRun(uid: string): Promise<Run>;
  readonly capacityDefaults: CapacityDefaults;
};

export type Created = { readonly run: Run; readonly created: boolean; readonly atCapacity: boolean };
type Answer = { readonly uid: string; readonly created: boolean; readonly atCapacity: boolean };

/**
 * Creates runs, all or none. Configurations are resolved first. Then one transaction writes the runs, queued
 * executions, prompts and events, and the responses that are returned again for the same idempotency keys. A cause
 * creates one run: a later request with the same cause returns that run, without a time limit.
 *
 * Errors: prompt_required, mode_unknown, metadata_invalid … (invalid_argument) · team_not_found · not_authorized ·
 * reserved_for_scoring, workspace_missing (invalid_argument) · conversation_not_found · parent_run_invalid,
 * depth_exceeded (invalid_argument) · idempotency_mismatch, factory_closed (conflict) · those of config resolution.
 */
export async function createRuns(
  deps: CreateRunsDeps,
  caller: Caller,
  requests: readonly NewRun[],
): Promise<Created[]> {
  for (const request of requests) {
    checkNewRun(request);
    requireNothingReserved(caller, request);
    requireVerbAs(caller, request.owner, "run.create", request.owner.type);
  }
  const earlier = await earlierRuns(deps, caller, requests);
  const alike = { ...deps, resolveRun: onceEach(deps) };
  const resolved = await Promise.all(
    requests.map(async (request, n): Promise<Resolved | Answer> =>
      earlier[n] ? { uid: earlier[n], created: false, atCapacity: false } : prepare(alike, caller, request),
    ),
  );
  const prepared = await Promise.all(
    resolved.map(async (one) =>
      "request" in one ? { ...one, files: await storeFiles(deps, one.request.attachments) } : one,
    ),
  );
  const made = new Map<string, Run>();
  const runs = prepared.every(isPlain) && prepared.length === 1 ? deps.sharedRuns : deps.runs;
  const create = runs(async (tx) => {
    if (prepared.length > 1 && prepared.every((one) => !("request" in one) || isOfCauseAlone(one)))
      return insertTogether({ ...deps, made }, tx, caller, prepared);
    const parents = await tx.lockParents(
      [...new Set(prepared.flatMap((one) => ("request" in one ? lockedBy(one.request) : [])))].toSorted(),
    );
    const written: Answer[] = [];
    for (const one of prepared)
      written.push("request" in one ? await write({ ...deps, made }, tx, caller, one, parents) : one);
    return written;
  });
  const answers = await create.catch(async (error: unknown) => {
    // After a DomainError nothing was committed. After any other error the transaction may have been committed.
    if (isDomainError(error)) await dropFiles(deps, prepared.flatMap(filesOf));
    throw error;
  });
  await dropFiles(deps, prepared.filter((_one, n) => answers[n]?.created === false).flatMap(filesOf));
  return Promise.all(
    answers.map(async ({ uid, ...rest }) => ({ run: made.get(uid) ?? (await deps.getRun(uid)), ...rest })),
  );
}

/** `made`: the inserted runs, so that they need not be read again. */
type WriteDeps = CreateRunsDeps & { readonly made: Map<string, Run> };

type Resolved = {
  readonly request: NewRun;
  readonly causeKey?: string;
  readonly resolved: ResolvedRun;
  readonly conversationUid: ConversationUid;
};
type Prepared = Resolved & { readonly files: readonly Attachment[] };

/**
 * Returns whether the creation waits for no lock: the run has no parent, factory, cause, idempotency key or borrowed
 * workspace, and is not local.
 */
const isPlain = (one: Prepared | Answer): boolean =>
  "request" in one &&
  !one.request.local &&
  !one.causeKey &&
  !one.request.idempotencyKey &&
  !one.request.parentRunUid &&
  !one.request.workspaceOfRunUid &&
  !one.resolved.frozen.factory_uid;

/** Returns whether the run depends on no other run, has no files, and is deduplicated by its cause alone. */
const isOfCauseAlone = ({ request, causeKey, files }: Prepared): boolean =>
  causeKey !== undefined &&
  !request.local &&
  !request.parentRunUid &&
  !request.retryOfRunUid &&
  !request.workspaceOfRunUid &&
  files.length === 0;

/** Returns the runs to lock: the parent, and the run whose workspace the new run starts from. */
const lockedBy = ({ parentRunUid, workspaceOfRunUid }: NewRun): string[] =>
  [parentRunUid, workspaceOfRunUid].flatMap((uid) => uid?.toLowerCase() ?? []);

const filesOf = (one: Prepared | Answer): readonly Attachment[] => ("files" in one ? one.files : []);

/** Returns the runs that the causes of these requests have created already. */
async function earlierRuns(
  deps: CreateRunsDeps,
  caller: Caller,
  requests: readonly NewRun[],
): Promise<(RunUid | undefined)[]> {
  const causes = requests.flatMap((request, n) => {
    const causeKey = causeOf(caller, request);
    return causeKey ? [{ n, ownerUid: request.owner.uid, causeKey }] : [];
  });
  const found = causes.length > 0 ? await deps.findByCauses(causes) : [];
  const earlier: (RunUid | undefined)[] = requests.map(() => undefined);
  for (const [index, { n }] of causes.entries()) earlier[n] = found[index];
  return earlier;
}

/** Resolves identical requests once. The results contain only text that PostgreSQL can store. */
function onceEach(deps: CreateRunsDeps): CreateRunsDeps["resolveRun"] {
  const known = new Map<string, Promise<ResolvedRun>>();
  return (caller, request) => {
    const key = JSON.stringify(request);
    const resolving = known.get(key) ?? deps.resolveRun(caller, request).then(storableRun);
    known.set(key, resolving);
    return resolving;
  };
}

const storableRun = (resolved: ResolvedRun): ResolvedRun => ({
  ...resolved,
  agentConfig: storableJson(resolved.agentConfig),
  frozen: storableJson(resolved.frozen),
  ...(resolved.skill && { skill: storableJson(resolved.skill) }),
});

/** Calls upstream services and reads other runs, before the transaction starts. */
async function prepare(deps: CreateRunsDeps, caller: Caller, request: NewRun): Promise<Resolved> {
  const causeKey = causeOf(caller, request);
  const parent = request.parentRunUid ? await deps.findVisibleRun(caller, request.parentRunUid) : undefined;
  if (request.parentRunUid && !parent) throw parentInvalid();
  const conversationUid = await conversationOf(deps, caller, request);
  const { owner, config, dispatcherConfig, skill, agentUid, agentName } = request;
  // A child run names an agent of its parent's factory.
  const factoryUid = request.factoryUid ?? (agentName ? parent?.factoryUid : undefined);
  const borrowed = request.workspaceOfRunUid
    ? borrow(await deps.findLeftWorkspace(request.workspaceOfRunUid), owner)
    : undefined;
  const repositories = borrowed?.repositories ?? request.pinnedRepositories;
  const trial = parent ? await deps.findTrialSettings(parent.uid) : trialSettingsOf(request);
  const resolved = await deps.resolveRun(caller, {
    ...(trial ? { trial } : {}),
    ...(request.judge ? { judge: request.judge } : {}),
    ...(borrowed ? { workspace: borrowed.workspace } : {}),
    ...(repositories ? { repositories } : {}),
    owner,
    config,
    ...(dispatcherConfig ? { dispatcherConfig } : {}),
    ...(skill ? { skill } : {}),
    ...(agentUid ? { agentUid } : {}),
    ...(agentName ? { agentName } : {}),
    ...(factoryUid ? { factoryUid } : {}),
  });
  return { request, ...(causeKey ? { causeKey } : {}), resolved, conversationUid };
}

/**
 * Returns the cause of a request. A run that an execution creates with its run token is created once per tool call,
 * even if the attempt is repeated.
 */
const causeOf = (caller: Caller, { causeKey, idempotencyKey }: NewRun): string | undefined =>
  causeKey ?? (caller.run && idempotencyKey ? `${caller.run.runUid}:${idempotencyKey}` : undefined);

async function conversationOf(
  deps: CreateRunsDeps,
  caller: Caller,
  { conversationUid }: NewRun,
): Promise<ConversationUid> {
  if (conversationUid === undefined) return newUid<ConversationUid>();
  const newest = await deps.findNewestOfConversation(caller, conversationUid);
  if (!newest) throw notFound("conversation");
  return newest.conversationUid;
}

async function write(
  deps: WriteDeps,
  tx: RunTransaction,
  caller: Caller,
  prepared: Prepared,
  parents: readonly RunParent[],
): Promise<Answer> {
  const { request, causeKey, files } = prepared;
  const { idempotencyKey, causeKey: _, ...asked } = request;
  const body = {
    ...asked,
    mode: modeOf(request),
    attachments: files.map(({ fileName, mimeType, sha256 }) => ({ fileName, mimeType, sha256 })),
  };
  const key = causeKey ? undefined : idempotencyKey;
  let isNew = false;
  const answer = await tx.once({ principalUid: actorOf(caller).uid, operation: "create_run", key, body }, async () => {
    isNew = true;
    return insert(deps, tx, caller, prepared, parents);
  });
  return isNew ? answer : { ...answer, created: false };
}

/** Inserts many runs in one statement; used when many schedules fire in the same second. */
async function insertTogether(
  deps: WriteDeps,
  tx: RunTransaction,
  caller: Caller,
  prepared: readonly (Prepared | Answer)[],
): Promise<Answer[]> {
  const fresh = prepared.filter((one) => "request" in one);
  for (const factoryUid of new Set(fresh.flatMap(({ resolved }) => resolved.frozen.factory_uid ?? [])))
    await requireFactoryOpen(tx, factoryUid);
  const records = new Map(fresh.map((one) => [one, recordOf(caller, one, undefined)]));
  for (const run of await tx.insertRuns([...records.values()], { actor: actorOf(caller), requestId: caller.requestId }))
    deps.made.set(run.uid, run);
  const capacities = new Map<string, boolean>();
  const answers: Answer[] = [];
  for (const one of prepared) {
    const record = "request" in one ? records.get(one) : undefined;
    if (!("request" in one) || !record) {
      answers.push(one as Answer);
      continue;
    }
    const { agent_uid: agentUid, factory_uid: factoryUid } = one.resolved.frozen;
    const subject = { owner: one.request.owner, agentUid, factoryUid };
    const key = JSON.stringify(subject);
    if (!capacities.has(key))
      capacities.set(
        key,
        await tx.ensureCapacity(subject, one.resolved.queueSettings, deps.capacityDefaults, Promise.resolve()),
      );
    const isNew = deps.made.has(record.uid);
    const uid = isNew ? record.uid : ((await tx.findByCause(one.request.owner.uid, one.causeKey ?? "")) ?? record.uid);
    answers.push({ uid, created: isNew, atCapacity: isNew && capacities.get(key)! });
  }
  return answers;
}

/** Returns the settings that the runs below a new benchmark trial inherit. */
function trialSettingsOf({ source, pinnedRepositories = [], agentOverrides = {} }: NewRun): TrialSettings | undefined {
  return source === TRIAL_SOURCE
    ? { pinned_repositories: pinnedRepositories, agent_overrides: agentOverrides }
    : undefined;
}

async function requireFactoryOpen(tx: RunTransaction, factoryUid: string): Promise<void> {
  if (await tx.holdFactoryOpen(factoryUid)) return;
  throw new DomainError({
    kind: "conflict",
    reason: "factory_closed",
    message: "The factory is being deleted and accepts no new runs.",
  });
}

/**
 * Throws `conversation_moving` unless the conversation's current run has ended, and also if a run has received a
 * message of the same cause concurrently.
 */
async function requireOver(
  tx: RunTransaction,
  conversationUid: string,
  newestUid: string,
  { owner, causeKey }: NewRun,
): Promise<void> {
  const run = await lockNewest(tx, { conversationUid, owner }, newestUid);
  if (!run || !isOver(lifeOf(run).run)) throw conversationMoving();
  if (causeKey && (await tx.runOfMessage(messageUidOf(owner.uid, causeKey)))) throw conversationMoving();
}

/**
 * Locks a run if it is its owner's current run in the conversation. No other transaction can continue the conversation
 * until this one ends.
 */
export const lockNewest = async (
  tx: RunTransaction,
  place: Pick<LockedRun, "conversationUid" | "owner">,
  uid: string,
): Promise<LockedRun | undefined> =>
  (await tx.holdConversation(place)) === uid ? (await tx.lockRuns([uid]))[0] : undefined;

/**
 * The error if another transaction continues the conversation concurrently. The caller must read the conversation
 * again.
 */
export const conversationMoving = (): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "conversation_moving",
    message: "Another request is continuing the conversation. Retry in a few seconds.",
  });

async function insert(
  deps: WriteDeps,
  tx: RunTransaction,
  caller: Caller,
  prepared: Prepared,
  parents: readonly RunParent[],
): Promise<Answer> {
  const { request, resolved, causeKey } = prepared;
  const parent = parentOf(request, parents);
  if (request.workspaceOfRunUid) await requireWorkspace(tx, prepared, parents);
  const record = recordOf(caller, prepared, parent);
  const { factory_uid: factoryUid } = resolved.frozen;
  if (factoryUid) await requireFactoryOpen(tx, factoryUid);
  if (request.afterRunUid !== undefined) await requireOver(tx, prepared.conversationUid, request.afterRunUid, request);
  const subject = { owner: request.owner, agentUid: resolved.frozen.agent_uid, factoryUid };
  const context = { actor: actorOf(caller), requestId: caller.requestId, ...(causeKey ? { cause: causeKey } : {}) };
  const inserting = tx.insertRun(record, context);
  const [run, atCapacity] = await Promise.all([
    inserting,
    tx.ensureCapacity(subject, resolved.queueSettings, deps.capacityDefaults, inserting),
  ]);
  if (!run) {
    const earlier = await tx.findByCause(request.owner.uid, causeKey ?? "");
    return { uid: earlier ?? record.uid, created: false, atCapacity: false };
  }
  if (request.local) await startLocally(tx, run.uid, request.local, context);
  else deps.made.set(run.uid, run);
  return { uid: record.uid, created: true, atCapacity };
}

/**
 * Checks under the lock that the run was not continued, and its workspace not deleted, since the configuration was
 * resolved. Errors: workspace_missing.
 */
async function requireWorkspace(
  tx: RunTransaction,
  { request, resolved }: Prepared,
  locked: readonly RunParent[],
): Promise<void> {
  const source = locked.find(({ uid }) => uid === request.workspaceOfRunUid?.toLowerCase());
  const key = resolved.frozen.workspace?.snapshot_key;
  if (!source || !isBorrowable(source, request.owner) || (key !== undefined && !(await tx.isSnapshotStored(key))))
    throw workspaceMissing();
}

function parentOf({ parentRunUid, owner }: NewRun, parents: readonly RunParent[]): RunParent | undefined {
  if (parentRunUid === undefined) return undefined;
  const parent = parents.find(({ uid }) => uid === parentRunUid.toLowerCase());
  if (!parent || parent.owner.type !== owner.type || parent.owner.uid !== owner.uid) throw parentInvalid();
  if (isTerminal(parent.state))
    throw invalidArgument("parent_run_invalid", "The parent run has ended. Create the run without parent_run_id.");
  if (parent.depth >= DEPTH_MAX)
    throw invalidArgument(
      "depth_exceeded",
      `Runs can be nested at most ${DEPTH_MAX} levels deep. Create the run without parent_run_id.`,
    );
  return parent;
}

const parentInvalid = () =>
  invalidArgument("parent_run_invalid", "parent_run_id must be a run of the same owner that is visible to you.");

function recordOf(
  caller: Caller,
  { request, resolved, causeKey, conversationUid, files }: Prepared,
  parent: RunParent | undefined,
): RunRecord {
  const uid = newUid<RunUid>();
  const prompt = storable(request.prompt ?? "");
  const metadata = { ...parent?.metadata, ...request.metadata };
  checkMetadata(metadata);
  const { type, uid: actorUid } = actorOf(caller);
  return {
    uid,
    rootRunUid: parent?.rootRunUid ?? uid,
    ...(parent ? { parentRunUid: parent.uid } : {}),
    ...(request.retryOfRunUid ? { retryOfRunUid: request.retryOfRunUid } : {}),
    depth: parent ? parent.depth + 1 : 0,
    owner: request.owner,
    creator: request.creatorUid ? { type: "user", uid: request.creatorUid } : { type, uid: actorUid },
    executorUid: resolved.executorUid,
    title: titleOf(request, resolved.frozen.agent_name ?? "Run"),
    isTitleGiven: Boolean(request.title?.trim()),
    prompt,
    ...(request.prompt === undefined ? {} : { submittedPrompt: prompt }),
    mode: modeOf(request),
    interactive: request.interactive,
    source: parent && request.source === "API" ? "ORCHESTRATION" : request.source,
    ...(request.origin ? { origin: request.origin } : {}),
    executionLocation: request.local ? "LOCAL" : "REMOTE",
    conversationUid,
    agentConfig: resolved.agentConfig,
    ...(resolved.skill ? { agentSkill: resolved.skill } : {}),
    frozen: parent?.isCostLimited ? { ...resolved.frozen, cost_limited_above: true as const } : resolved.frozen,
    ...(resolved.frozen.factory_uid ? { factoryUid: resolved.frozen.factory_uid } : {}),
    metadata,
    ...(causeKey ? { causeKey: storable(causeKey) } : {}),
    ...(request.schedule ? { schedule: request.schedule } : {}),
    ...(request.triggerUrl ? { triggerUrl: request.triggerUrl } : {}),
    ...(prompt === "" && files.length === 0 ? {} : { message: { uid: newUid(), text: prompt, attachments: files } }),
  };
}
