import { actorOf, type Caller } from "@millwright/caller";
import { DomainError, notFound } from "@millwright/errors";
import { lifecycleOf } from "../domain/run-change.ts";
import { isExecuting } from "../domain/run-state.ts";
import type { InRunTransaction } from "../store/run-transaction.ts";
import { harnessOf, isTerminal, type Run } from "../domain/run.ts";
import { findMessageTarget, type RunTarget, type MessageTargetDeps } from "./run-target.ts";
import { settleChanges } from "./settle-changes.ts";

export type InterruptRunDeps = MessageTargetDeps & { readonly runs: InRunTransaction };

/**
 * Stores a directive for the worker of an active run to end its turn, including tool calls in progress. The run stays
 * INPROGRESS and accepts follow-ups. A run that waits for its children has no turn to end: nothing changes. When this
 * returns the directive is stored. A repeated call stores another directive.
 *
 * Errors, in this order: run_not_found · conversation_not_found · not_authorized · run_already_finished
 * (invalid_argument) · operation_not_supported (unsupported: a third-party harness, or a local run) · run_not_started
 * (conflict, retryable).
 */
export async function interruptRun(deps: InterruptRunDeps, caller: Caller, target: RunTarget): Promise<string> {
  const { uid, ...found } = await findMessageTarget(deps, caller, target);
  await deps.runs(async (tx) => {
    const [run] = await tx.lockRuns([uid]);
    if (!run) throw notFound("run");
    checkInterruptible({ ...found, state: run.state });
    if (!isExecuting(run.execution.state)) return;
    const by = actorOf(caller);
    const next = { ...lifecycleOf(run), lease: "unchanged", hasNextExecution: false } as const;
    const events = [{ kind: "interrupt_requested", payload: { by: by.uid }, executionId: run.execution.id }] as const;
    await settleChanges(tx, [{ run, next, events, directive: { kind: "interrupt", payload: { turn_id: "" } } }], [], {
      actor: by,
      requestId: caller.requestId,
    });
  });
  return uid;
}

function checkInterruptible(run: Pick<Run, "state" | "executionLocation" | "agentConfig">): void {
  if (isTerminal(run.state))
    throw new DomainError({
      kind: "invalid_argument",
      reason: "run_already_finished",
      message: "The run has already finished. Retry it, or send a follow-up, to continue its work.",
    });
  if (run.executionLocation === "LOCAL" || harnessOf(run) !== "oz") {
    throw new DomainError({
      kind: "unsupported",
      reason: "operation_not_supported",
      message:
        "Only runs on the platform's own harness can be interrupted. Send a follow-up or cancel the run instead.",
    });
  }
  if (run.state !== "INPROGRESS") {
    throw new DomainError({
      kind: "conflict",
      reason: "run_not_started",
      retryable: true,
      retryAfterSeconds: 1,
      message: "The run has not started. Retry after 1 second.",
    });
  }
}
