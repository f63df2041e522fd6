import { newUid } from "@millwright/ids";
import { LIMIT_OUTCOMES, type ExceededLimit } from "../domain/execution-limits.ts";
import type { ReaperTick } from "../domain/reaper-tick.ts";
import {
  lifecycleOf,
  PLATFORM_ACTOR,
  type ChangeContext,
  type LockedRun,
  type RunChange,
} from "../../runs/domain/run-change.ts";
import type { NewRunEvent } from "../../runs/domain/run-events.ts";
import { isExecuting, transition } from "../../runs/domain/run-state.ts";
import type { InRunTransaction, RunTransaction } from "../../runs/store/run-transaction.ts";
import { isTerminal } from "../../runs/domain/run.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import { finished, requeuedEvent, windowEnded } from "../../runs/usecases/execution-events.ts";
import { settleChanges } from "../../runs/usecases/settle-changes.ts";

export type ReapDeps = {
  readonly runs: InRunTransaction;
  /**
   * Returns the first overdue leases after an execution, by the database's clock. After a pause of the reaper it
   * extends all leases and returns none.
   */
  tick(afterExecutionId: number): Promise<ReaperTick>;
  /** Returns the first executions after an execution that have exceeded a limit. */
  findExceededLimits(afterExecutionId: number): Promise<readonly ExceededLimit[]>;
};

/** Number of leases that are processed concurrently. Each needs a database connection. */
const CONCURRENCY = 4;

/**
 * Runs one round of the reaper: expired offers and leases, stopping executions whose grace period has ended, and
 * executions that have exceeded a time limit. Each is checked again under the lock of its run, so any number of
 * replicas may run this concurrently. A tick is recorded before each batch, so that a long round is not mistaken for a
 * pause. Limits are only enforced after a tick that has checked leases: otherwise this may be the first round after a
 * pause, whose end another replica is recording.
 *
 * Errors: the first error, after all items were processed.
 */
export async function reap(deps: ReapDeps): Promise<void> {
  let outcome: ReaperTick["outcome"] | undefined;
  const failures = await forEach(
    async (after) => {
      const tick = await deps.tick(after);
      outcome = tick.outcome;
      return tick.overdue;
    },
    (lease) => deps.runs((tx) => reapLease(tx, lease)),
  );
  if (outcome === "checked")
    failures.push(
      ...(await forEach(
        (after) => deps.findExceededLimits(after),
        (exceeded) => deps.runs((tx) => enforceLimit(tx, exceeded)),
      )),
    );
  if (failures.length > 0) throw failures[0];
}

/**
 * Processes all items once, in batches. A failed item does not prevent the others from being processed. Returns the
 * errors.
 */
async function forEach<T extends LeaseRef>(
  find: (afterExecutionId: number) => Promise<readonly T[]>,
  f: (item: T) => Promise<void>,
): Promise<unknown[]> {
  const failures: unknown[] = [];
  for (let batch = await find(0); batch.length > 0; batch = await find(batch.at(-1)!.executionId)) {
    const waiting = [...batch];
    const processWaiting = async (): Promise<void> => {
      for (let item = waiting.shift(); item; item = waiting.shift())
        await f(item).catch((error: unknown) => failures.push(error));
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, processWaiting));
  }
  return failures;
}

async function reapLease(tx: RunTransaction, lease: LeaseRef): Promise<void> {
  const { run, locked } = await lockRunOfLease(tx, lease);
  if (!run?.execution.lease?.isExpired) return; // renewed, ended or offered again concurrently
  const { lapsedMs } = run.execution.lease;
  if (run.execution.state === "DEBUG")
    return settleChanges(tx, [{ ...windowEnded(run, { type: "lose" }, "worker_lost"), lapsedMs }], locked, context());
  const next = transition(lifecycleOf(run), {
    type: "lose",
    policy: run.execution.isLocal ? "end" : await tx.onWorkerLoss(run.uid),
  });
  await settleChanges(tx, [{ run, next, events: lossEvents(run, next), lapsedMs }], locked, context());
}

function lossEvents(run: LockedRun, next: RunChange["next"]): NewRunEvent[] {
  const { id, attempt, state, workerHost = "" } = run.execution;
  if (state === "OFFERED") return [requeuedEvent("offer_expired", id)];
  if (!isExecuting(state)) return []; // the execution was stopping, so its run has ended already
  const lost: NewRunEvent = {
    kind: "worker_lost",
    payload: { worker_host: workerHost, reason: "lease_expired", attempt },
    executionId: id,
  };
  if (isTerminal(next.run))
    return [lost, finished(next, id, { reason: run.execution.isLocal ? "client_lost" : "worker_lost" })];
  return [lost, requeuedEvent(state === "RUNNING" ? "resumed" : "restarted", id)];
}

async function enforceLimit(tx: RunTransaction, { limit, idleMs, ...lease }: ExceededLimit): Promise<void> {
  const { run, locked } = await lockRunOfLease(tx, lease);
  if (run?.execution.state === "DEBUG" && limit === "debug")
    return settleChanges(tx, [windowEnded(run, { type: "lose" }, "window_expired")], locked, context());
  if (!run || !isExecuting(run.execution.state) || limit === "debug") return;
  if (limit === "stall_warning") {
    await tx.appendRunEvents(run.uid, [
      { kind: "stalled", payload: { idle_seconds: Math.round((idleMs ?? 0) / 1000) }, executionId: run.execution.id },
    ]);
    await tx.markStallWarned(run.execution.id);
    return;
  }
  const { state, status } = LIMIT_OUTCOMES[limit];
  const next = transition(lifecycleOf(run), { type: "stop", state, status });
  const change: RunChange = {
    run,
    next,
    events: [finished(next, run.execution.id, { reason: `${limit}_limit` })],
    directive: { kind: "cancel", payload: { reason: status.message } },
  };
  await settleChanges(tx, [change], locked, context());
}

async function lockRunOfLease(
  tx: RunTransaction,
  { executionId, attempt }: LeaseRef,
): Promise<{ run?: LockedRun; locked: LockedRun[] }> {
  const ref = await tx.runOfExecution(executionId);
  if (!ref) return { locked: [] };
  const locked = await tx.lockRuns([ref.uid, ...(ref.parentRunUid ? [ref.parentRunUid] : [])], [executionId]);
  const run = locked.find(({ uid }) => uid === ref.uid);
  return run?.execution.id === executionId && run.execution.lease?.attempt === attempt ? { run, locked } : { locked };
}

const context = (): ChangeContext => ({ actor: PLATFORM_ACTOR, requestId: newUid() });
