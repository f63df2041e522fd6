import { isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import type { Assignment, Input, Job } from "../domain/assignment.ts";
import { attachmentKey, SNAPSHOT_TYPE } from "../domain/blob-keys.ts";
import type { Message } from "../domain/message.ts";
import { lifeOf, type ChangeContext, type LockedRun } from "../domain/run-change.ts";
import { isHeld, transition } from "../domain/run-state.ts";
import type { AssignmentDetails } from "../domain/resolved-run.ts";
import type { InRunTransaction, RunTransaction } from "../domain/run-transaction.ts";
import type { RunTokenClaims } from "../domain/run-token.ts";
import type { RunStatus } from "../domain/run.ts";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";
import { finished } from "./execution-events.ts";
import { settleChanges } from "./settle-changes.ts";

export type AcceptOffersDeps = {
  readonly runs: InRunTransaction;
  /** What an execution that this session has on offer (or holds) is for. */
  findJob(session: WorkerSession, lease: LeaseRef): Promise<Job | undefined>;
  /** Clone URLs, authorization, secret values and access to models as this worker may have them, read anew each time. */
  prepareAssignment(job: Job, session: WorkerSession): Promise<AssignmentDetails>;
  mintRunToken(claims: RunTokenClaims): Promise<string>;
  /** A signed URL to read a stored file: a workspace, an attachment. */
  downloadUrl(key: string, contentType: string): Promise<string>;
};

export type Accepted = { readonly assignments: readonly Assignment[]; readonly lost: readonly LeaseRef[] };

/**
 * Takes offers: each run is CLAIMED, everything its agent has not seen becomes the execution's inputs, and the worker gets
 * specification, secrets and run token. Repeated by the same session for the same attempt it answers the same.
 * A run whose secrets or repositories cannot be had ends with the reason; its offer counts as lost.
 *
 * Errors: unavailable when a neighbour cannot be asked; the offers stay open.
 */
export async function acceptOffers(deps: AcceptOffersDeps, session: WorkerSession, offers: readonly LeaseRef[]): Promise<Accepted> {
  const answers = await Promise.all(offers.map(async (offer) => ({ offer, assignment: await accept(deps, session, offer) })));
  return {
    assignments: answers.flatMap(({ assignment }) => (assignment ? [assignment] : [])),
    lost: answers.flatMap(({ offer, assignment }) => (assignment ? [] : [offer])),
  };
}

async function accept(deps: AcceptOffersDeps, session: WorkerSession, offer: LeaseRef): Promise<Assignment | undefined> {
  const job = await deps.findJob(session, offer);
  if (!job) return undefined;
  const prepared = await prepare(deps, job, session);
  const claim = await deps.runs((tx) => take(tx, session, offer, job, prepared));
  if (!claim || "failure" in prepared) return undefined;
  const { executionId, attempt } = offer;
  const runToken = await deps.mintRunToken({ run: job.run, executionId, attempt, expiresAt: claim.leaseExpiresAt });
  const { snapshotKey, inputs, ...rest } = claim;
  const snapshotUrl = snapshotKey ? await deps.downloadUrl(snapshotKey, SNAPSHOT_TYPE) : "";
  return { executionId, attempt, job, details: prepared.details, runToken, snapshotUrl, inputs: await Promise.all(inputs.map((message) => withLinks(deps, message))), ...rest };
}

const withLinks = async (deps: AcceptOffersDeps, message: Message): Promise<Input> => ({
  ...message,
  attachments: await Promise.all(message.attachments.map(async (file) => ({ ...file, downloadUrl: await deps.downloadUrl(attachmentKey(file), file.mimeType) }))),
});

type Prepared = { readonly details: AssignmentDetails } | { readonly failure: RunStatus; readonly reason: string };

/** Before anything is locked: neighbours are asked here. */
async function prepare(deps: AcceptOffersDeps, job: Job, session: WorkerSession): Promise<Prepared> {
  try {
    return { details: await deps.prepareAssignment(job, session) };
  } catch (error) {
    if (!isDomainError(error) || error.kind === "unavailable" || error.kind === "internal") throw error;
    return { failure: { message: error.message, errorCode: "environment_setup_failed", retryable: error.retryable }, reason: error.reason };
  }
}

type Claim = {
  readonly leaseExpiresAt: Date;
  readonly executionSeq: number;
  readonly inputs: readonly Message[];
  readonly snapshotKey?: string;
  readonly isRestarted: boolean;
};

async function take(tx: RunTransaction, session: WorkerSession, offer: LeaseRef, job: Job, prepared: Prepared): Promise<Claim | undefined> {
  const { run, locked } = await lock(tx, offer, job);
  const { lease } = run?.execution ?? {};
  if (!run || run.execution.attempt !== offer.attempt || lease?.sessionUid !== session.uid) return undefined;
  let inputs: readonly Message[] | undefined;
  const context: ChangeContext = { actor: { type: "worker", uid: session.workerHost }, requestId: newUid() };
  if (run.execution.state === "OFFERED" && !lease.isOver) {
    const claimed = { kind: "run_claimed", payload: { worker_host: session.workerHost }, executionId: offer.executionId } as const;
    await tx.save([{ run, next: transition(lifeOf(run), { type: "accept" }), events: [claimed] }], context);
    if ("failure" in prepared) return fail(tx, offer, job, prepared, context, locked);
    inputs = await tx.takeInputs(run.uid, offer.executionId);
  } else if (!isHeld(run.execution.state)) {
    return undefined;
  }
  const { setupLosses, runLosses, seq } = run.execution;
  const snapshotKey = await tx.previousSnapshot(run, offer.executionId);
  return {
    leaseExpiresAt: await tx.leaseExpiry(offer.executionId),
    executionSeq: seq,
    inputs: inputs ?? (await tx.inputsOf(run.uid, offer.executionId)),
    ...(snapshotKey ? { snapshotKey } : {}),
    isRestarted: setupLosses + runLosses > 0,
  };
}

/** The run ends in the transaction that claimed it: no worker is told of it. */
async function fail(tx: RunTransaction, offer: LeaseRef, job: Job, { failure, reason }: Extract<Prepared, { failure: RunStatus }>, context: ChangeContext, others: readonly LockedRun[]): Promise<undefined> {
  const { run } = await lock(tx, offer, job);
  if (!run) return;
  const next = transition(lifeOf(run), { type: "complete", outcome: "FAILED", status: failure, isWanted: false });
  await settleChanges(tx, [{ run, next, events: [finished(next, offer.executionId, { reason })] }], others, context);
}

async function lock(tx: RunTransaction, offer: LeaseRef, { run: { runUid, parentRunUid } }: Job): Promise<{ run?: LockedRun; locked: readonly LockedRun[] }> {
  const locked = await tx.lockRuns([runUid, ...(parentRunUid ? [parentRunUid] : [])], offer.executionId);
  const run = locked.find(({ uid, execution }) => uid === runUid && execution.id === offer.executionId);
  return run ? { run, locked } : { locked };
}
