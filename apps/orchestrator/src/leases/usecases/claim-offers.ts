import { isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import type { Job } from "../../runs/domain/assignment.ts";
import type { Directive } from "../../runs/domain/directive.ts";
import type { Message } from "../../runs/domain/message.ts";
import { lifecycleOf, type ChangeContext, type LockedRun, type RunChange } from "../../runs/domain/run-change.ts";
import { isExecuting, transition } from "../../runs/domain/run-state.ts";
import type { AssignmentDetails } from "../../runs/domain/resolved-run.ts";
import type { ClaimedExecution } from "../../runs/store/claim-store.ts";
import type { InRunTransaction, RunTransaction } from "../../runs/store/run-transaction.ts";
import type { RunStatus } from "../../runs/domain/run.ts";
import type { LeaseRef, WorkerSession } from "../../runs/domain/worker-session.ts";
import { finished } from "../../runs/usecases/execution-events.ts";
import { processBatched } from "../../runs/usecases/process-batched.ts";
import { settleChanges } from "../../runs/usecases/settle-changes.ts";

export type ClaimOffersDeps = {
  readonly runs: InRunTransaction;
  /** Returns the jobs of executions that are offered to this session or leased by it, by execution id. */
  findJobs(session: WorkerSession, leases: readonly LeaseRef[]): Promise<ReadonlyMap<number, Job>>;
  /**
   * Returns the clone URLs, authorization, secret values and model credentials that this worker may have. They are read
   * again for each call.
   */
  prepareAssignment(job: Job, session: WorkerSession): Promise<AssignmentDetails>;
};

/**
 * Accepts offers. Returns the offers whose job was found, and the claims that this session owns now. `onClaim` runs in
 * the transaction that accepts an offer.
 */
export async function claimOffers(
  deps: ClaimOffersDeps,
  session: WorkerSession,
  offers: readonly LeaseRef[],
  onClaim?: (tx: RunTransaction, offer: LeaseRef) => Promise<unknown>,
): Promise<{ readonly items: readonly Item[]; readonly claims: ReadonlyMap<LeaseRef, Claim> }> {
  const jobs = await deps.findJobs(session, offers);
  const found = offers.flatMap((offer) => {
    const job = jobs.get(offer.executionId);
    return job ? [{ offer, job }] : [];
  });
  const items = await Promise.all(
    found.map(async ({ offer, job }) => ({ offer, job, prepared: await prepare(deps, job, session) })),
  );
  const claims = new Map<LeaseRef, Claim>();
  await processBatched(items, ownRun, (group) =>
    deps.runs(async (tx) => {
      const taken = await claimGroup(tx, session, group);
      for (const [n, { offer }] of group.entries()) {
        if (!taken[n]) continue;
        await onClaim?.(tx, offer);
        claims.set(offer, taken[n]);
      }
    }),
  );
  return { items, claims };
}

export type Item = { readonly offer: LeaseRef; readonly job: Job; readonly prepared: Prepared };

/**
 * Returns the run of an item that may share a transaction with other items. Returns undefined for a run with a parent,
 * which several items may share, and for a run that is about to fail: each has a transaction of its own.
 */
const ownRun = ({ job: { run }, prepared }: Item): string | undefined =>
  run.parentRunUid || "failure" in prepared ? undefined : run.runUid;

type Prepared = { readonly details: AssignmentDetails } | { readonly failure: RunStatus; readonly reason: string };

/** Calls upstream services, so it runs before any lock is taken. */
async function prepare(
  deps: Pick<ClaimOffersDeps, "prepareAssignment">,
  job: Job,
  session: WorkerSession,
): Promise<Prepared> {
  try {
    return { details: await deps.prepareAssignment(job, session) };
  } catch (error) {
    if (!isDomainError(error) || error.kind === "unavailable" || error.kind === "internal") throw error;
    return {
      failure: { message: error.message, errorCode: "environment_setup_failed", retryable: error.retryable },
      reason: error.reason,
    };
  }
}

export type Claim = ClaimedExecution & {
  readonly executionSeq: number;
  readonly inputs: readonly Message[];
  readonly directives: readonly Directive[];
  readonly isRestarted: boolean;
};

async function claimGroup(
  tx: RunTransaction,
  session: WorkerSession,
  group: readonly Item[],
): Promise<(Claim | undefined)[]> {
  const uids = group.flatMap(({ job: { run } }) => [run.runUid, ...(run.parentRunUid ? [run.parentRunUid] : [])]);
  const locked = await tx.lockRuns(
    uids,
    group.map(({ offer }) => offer.executionId),
  );
  const context: ChangeContext = { actor: { type: "worker", uid: session.workerHost }, requestId: newUid() };
  const found = group.map((item) => ({ item, run: findClaimableRun(session, item, locked) }));
  const newlyClaimed = found.flatMap(({ item, run }) => (run?.execution.state === "OFFERED" ? [{ item, run }] : []));
  await tx.saveChanges(
    newlyClaimed.map(({ run }) => claimed(run, session)),
    context,
  );
  for (const { item, run } of newlyClaimed)
    if ("failure" in item.prepared) await failRun(tx, item.offer, run, item.prepared, context, locked);
  const claims = await claimsOf(
    tx,
    found.flatMap(({ item, run }) => (run && !("failure" in item.prepared) ? [{ item, run }] : [])),
  );
  return group.map((item) => claims.get(item));
}

/** Returns the run if its offer is open to this session, or was accepted by it before. */
function findClaimableRun(
  session: WorkerSession,
  { offer, job }: Item,
  locked: readonly LockedRun[],
): LockedRun | undefined {
  const run = locked.find(({ uid, execution }) => uid === job.run.runUid && execution.id === offer.executionId);
  if (!run || run.execution.attempt !== offer.attempt || run.execution.lease?.sessionUid !== session.uid)
    return undefined;
  const isOpen = run.execution.state === "OFFERED" && !run.execution.lease.isExpired;
  return isOpen || isExecuting(run.execution.state) ? run : undefined;
}

const claimed = (run: LockedRun, { workerHost }: WorkerSession): RunChange => ({
  run,
  next: transition(lifecycleOf(run), { type: "accept" }),
  events: [{ kind: "run_claimed", payload: { worker_host: workerHost }, executionId: run.execution.id }],
});

type Claimable = { readonly item: Item; readonly run: LockedRun };

async function claimsOf(tx: RunTransaction, claimable: readonly Claimable[]): Promise<Map<Item, Claim>> {
  const fresh = claimable.filter(({ run }) => run.execution.state === "OFFERED");
  const [inputs, executions] = await Promise.all([
    tx.assignInputs(fresh.map(({ run }) => ({ runUid: run.uid, executionId: run.execution.id }))),
    tx.readClaimedExecutions(claimable.map(({ run }) => run)),
  ]);
  const claims = claimable.map(async ({ item, run }): Promise<[Item, Claim]> => {
    const { id, attempt, state, setupLosses, runLosses, wasStarted = false, seq } = run.execution;
    const execution = executions.get(id);
    if (!execution) throw new Error(`execution ${id} was accepted but has no lease`);
    const isRestarted = setupLosses + runLosses > 0 || wasStarted;
    const claim = {
      ...execution,
      // The workspace of another run is used as long as the conversation has no workspace of its own.
      snapshotKey: execution.snapshotKey ?? item.job.frozen.workspace?.snapshot_key,
      executionSeq: seq,
      inputs: state === "OFFERED" ? (inputs.get(id) ?? []) : await tx.inputsOf(run.uid, id),
      directives: isRestarted ? await tx.takeOverDirectives(id, attempt) : [],
      isRestarted,
    };
    return [item, claim];
  });
  return new Map(await Promise.all(claims));
}

/** Fails the run in the transaction that claimed it, so no worker receives it. */
async function failRun(
  tx: RunTransaction,
  offer: LeaseRef,
  before: LockedRun,
  { failure, reason }: Extract<Prepared, { failure: RunStatus }>,
  context: ChangeContext,
  others: readonly LockedRun[],
): Promise<void> {
  const [run] = await tx.lockRuns([before.uid], [offer.executionId]);
  if (!run) return;
  const next = transition(lifecycleOf(run), {
    type: "complete",
    outcome: "FAILED",
    status: failure,
    needsNextExecution: false,
  });
  await settleChanges(tx, [{ run, next, events: [finished(next, offer.executionId, { reason })] }], others, context);
}
