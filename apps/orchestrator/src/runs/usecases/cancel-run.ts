import type { Timings } from "../domain/timings.ts";
import type { Caller } from "@millwright/caller";
import { actorOf } from "@millwright/caller";
import { DomainError, notFound } from "@millwright/errors";
import { retryAfterOffer } from "../domain/pending.ts";
import { lifecycleOf, type LockedRun, type RunChange } from "../domain/run-change.ts";
import { isExecuting, transition } from "../domain/run-state.ts";
import type { InRunTransaction, RunTransaction } from "../store/run-transaction.ts";
import { isRunTypeCancellable, isTerminal, type Run } from "../domain/run.ts";
import { finished, windowEnded } from "./execution-events.ts";
import { requireRunVerb } from "./run-access.ts";
import { settleChanges } from "./settle-changes.ts";

export type CancelRunDeps = {
  readonly runs: InRunTransaction;
  readonly timings: Pick<Timings, "offerTtlMs">;
  /** Errors: run_not_found. */
  getVisibleRun(caller: Caller, uid: string): Promise<Run>;
};

export type CancelRequest = {
  readonly runUid: string;
  /** Cancels every active descendant too. */
  readonly tree: boolean;
  /** The uid of the object that caused the request, such as a task. */
  readonly cause?: string;
  /** A repeated request of the same principal with the same key has no further effect. */
  readonly idempotencyKey?: string;
};

/**
 * Cancels a run. The run is CANCELLED when this returns. Its worker receives a directive to stop the execution, which
 * may append events for a short grace period. With `tree`, all active descendants are cancelled in the same
 * transaction, including children that are created concurrently: creating a child locks its parent, so a second query
 * after locking finds them. Open debug windows below the run are closed. The client of a LOCAL descendant receives the
 * cancel directive with its next report.
 *
 * Errors, in this order: run_not_found · not_authorized · run_already_finished (invalid_argument) · run_not_cancellable
 * (unsupported) · run_pending (conflict, retryable: its offer is still open) · idempotency_mismatch (conflict).
 */
export async function cancelRun(deps: CancelRunDeps, caller: Caller, request: CancelRequest): Promise<Run> {
  const { uid } = requireRunVerb(caller, await deps.getVisibleRun(caller, request.runUid), "run.manage");
  const once = {
    principalUid: actorOf(caller).uid,
    operation: "cancel",
    key: request.idempotencyKey,
    body: [uid, request.tree],
  };
  await deps.runs((tx) =>
    tx.once(once, async () => {
      const parentUid = await tx.parentOf(uid);
      const locked = await lockTree(tx, uid, parentUid, request.tree);
      const target = locked.find((run) => run.uid === uid);
      if (!target) throw notFound("run");
      const descendants = locked.filter((run) => run.uid !== uid && run.uid !== parentUid);
      const targets = [target, ...descendants.filter((run) => !isTerminal(run.state))];
      const inDebugWindow = descendants.filter(({ execution }) => execution.state === "DEBUG");
      const by = { actorUid: actorOf(caller).uid, offerTtlMs: deps.timings.offerTtlMs };
      const changes = [
        ...targets.map((run) => cancelled(run, run.uid !== uid, by)),
        ...inDebugWindow.map((run) => windowEnded(run, { type: "lose" }, "cancelled")),
      ];
      await settleChanges(tx, changes, locked, {
        actor: actorOf(caller),
        requestId: caller.requestId,
        cause: request.cause || undefined,
      });
      return true;
    }),
  );
  return deps.getVisibleRun(caller, uid);
}

/** Locks the run, its parent and, with `tree`, its active descendants. Repeats until no descendant is unlocked. */
async function lockTree(
  tx: RunTransaction,
  uid: string,
  parentUid: string | undefined,
  tree: boolean,
): Promise<LockedRun[]> {
  const known = new Set([uid, ...(parentUid ? [parentUid] : []), ...(tree ? await tx.liveDescendants(uid) : [])]);
  const locked = await tx.lockRuns([...known]);
  for (let isSettled = !tree; !isSettled;) {
    const fresh = (await tx.liveDescendants(uid)).filter((descendant) => !known.has(descendant));
    isSettled = fresh.length === 0;
    for (const descendant of fresh) known.add(descendant);
    if (!isSettled) locked.push(...(await tx.lockRuns(fresh)));
  }
  return locked;
}

function cancelled(
  run: LockedRun,
  isDescendant: boolean,
  { actorUid, offerTtlMs }: { actorUid: string; offerTtlMs: number },
): RunChange {
  if (!isDescendant && !isTerminal(run.state) && !isRunTypeCancellable(run)) {
    throw new DomainError({
      kind: "unsupported",
      reason: "run_not_cancellable",
      message: "This run is executed by its client and cannot be cancelled here. Stop it where it runs.",
    });
  }
  const message = isDescendant ? "Cancelled with its parent run." : "Cancelled.";
  const { lease } = run.execution;
  const isForced = isDescendant || lease?.isExpired === true; // no worker can accept an expired offer
  const retryAfter = retryAfterOffer(lease?.leftMs ?? 0, offerTtlMs);
  const next = transition(lifecycleOf(run), { type: "cancel", isForced, status: { message }, retryAfter });
  return {
    run,
    next,
    events: [
      finished(next, run.execution.id, {
        cancelled_by: actorUid,
        reason: isDescendant ? "cancelled_with_tree" : "cancelled",
      }),
    ],
    directive: isExecuting(run.execution.state)
      ? ({ kind: "cancel", payload: { reason: message } } as const)
      : undefined,
    wait: run.wait ? null : undefined,
  };
}
