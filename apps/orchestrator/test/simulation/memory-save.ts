import type { RunChange } from "../../src/runs/domain/run-change.ts";
import { appendEvents, queueExecution } from "./memory-transaction.ts";
import { releaseCapacity } from "./memory-queue.ts";
import type { ExecutionRow, Rows } from "./rows.ts";

/** Saves the change of a run: its row, its execution, the consequences of both, and the lease. */
export function saveChange(rows: Rows, change: RunChange): void {
  const { run, next } = change;
  saveRun(rows, change);
  if (next.execution !== run.execution.state || next.lease !== "unchanged") saveExecution(rows, change);
  if (next.hasNextExecution) queueExecution(rows, run.uid, rows.executionsOf(run.uid).at(-1)!.seq + 1);
  if (change.wait !== undefined) rows.waits.remove(run.uid);
  if (change.wait) rows.waits.put(run.uid, change.wait);
  if (change.directive) {
    const seq = rows.directives.all().filter(({ executionId }) => executionId === run.execution.id).length + 1;
    rows.directives.put(`${run.execution.id} ${seq}`, {
      ...change.directive,
      executionId: run.execution.id,
      attempt: run.execution.attempt,
      seq,
      isAcked: false,
    });
  }
  saveLease(rows, change);
  appendEvents(rows, run.uid, change.events);
}

function saveRun(rows: Rows, { run, next, submittedPrompt }: RunChange): void {
  const row = rows.runs.get(run.uid)!;
  const status = next.status === undefined ? row.status : (next.status ?? undefined);
  rows.runs.put(run.uid, {
    ...row,
    state: next.run,
    status,
    submittedPrompt: submittedPrompt ?? row.submittedPrompt,
    hasStarted: row.hasStarted || (run.state === "CLAIMED" && next.run === "INPROGRESS"),
    executionCount: row.executionCount + (next.hasNextExecution ? 1 : 0),
  });
}

function saveExecution(rows: Rows, { run, next, snapshotKey }: RunChange): void {
  const row = rows.executions.get(run.execution.id) as ExecutionRow;
  rows.executions.put(row.id, {
    ...row,
    state: next.execution,
    setupLosses: next.setupLosses,
    runLosses: next.runLosses,
    acceptedAttempt: next.execution === "CLAIMED" ? row.attempt : row.acceptedAttempt,
    retainedAttempts:
      row.state === "RUNNING" && next.execution === "QUEUED"
        ? [...row.retainedAttempts, row.attempt]
        : row.retainedAttempts,
    outcome: next.outcome,
    snapshotKey: snapshotKey ?? row.snapshotKey,
  });
}

function saveLease(rows: Rows, { run, next }: RunChange): void {
  const { id, attempt, lease } = run.execution;
  const stream = rows.streams.get(run.uid)!;
  if (next.lease === "accept") {
    rows.leases.patch(id, { isAccepted: true, isExpired: false });
    rows.streams.put(run.uid, { ...stream, executionId: id, attempt, lastClientSeq: 0 });
  }
  if (next.lease === "stop") rows.leases.patch(id, { isStopping: true });
  if (next.lease !== "release") return;
  if (lease) releaseCapacity(rows, run);
  rows.leases.remove(id);
  if (stream.executionId === id)
    rows.streams.put(run.uid, { lastSeq: stream.lastSeq, lastClientSeq: stream.lastClientSeq });
}
