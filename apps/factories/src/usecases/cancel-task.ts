import type { Caller } from "@millwright/caller";
import { DomainError, notFound } from "@millwright/errors";
import { idempotentRequest } from "@millwright/idempotency";
import { changeTask, type ConversationState, type Task } from "../domain/task.ts";
import { originOf } from "../events/origin.ts";
import { taskUpdated } from "../events/task-events.ts";
import type { ResponseStore } from "../store/idempotency.ts";
import { getTask, type FindTaskDeps } from "./find-task.ts";
import { findFactory } from "./scope.ts";
import type { UpdateTaskDeps } from "./update-task.ts";

export type CancelTaskDeps = FindTaskDeps &
  UpdateTaskDeps & {
    runs: {
      /** Returns the state of the team's newest run of the conversation. */
      conversationStateOf(
        caller: Caller,
        teamUid: string,
        conversationUid: string,
      ): Promise<ConversationState | undefined>;
      /** Cancels a run and its live descendants. Errors: those of cancelling a run. */
      cancelTree(caller: Caller, runUid: string, cause: string, idempotencyKey: string): Promise<void>;
    };
    responses: Pick<ResponseStore, "respondFirst">;
  };

/**
 * Cancels the current top-level run with all its live descendants, then sets the task's stage to CANCELLED. If the
 * process crashes in between, the run's event completes the operation. The run is stored under the client's idempotency
 * key, so a repeated request cancels no newer run, and leaves the stage that the task has with a newer run.
 * Errors, in this order: factory_not_found · not_authorized · task_not_found · run_not_found (the conversation has no
 * current run) · run_access_denied (permission_denied: the caller may not view it) · run_already_finished ·
 * run_not_cancellable · run_pending.
 */
export async function cancelTask(
  deps: CancelTaskDeps,
  caller: Caller,
  ref: { factoryUid: string; taskUid: string; idempotencyKey: string },
): Promise<Task> {
  const task = await getTask(deps, caller, ref.factoryUid, ref.taskUid);
  await findFactory(deps, caller, ref.factoryUid, "task.manage");
  const current = await deps.runs.conversationStateOf(caller, task.teamUid, task.conversationUid);
  const request = idempotentRequest(caller.principal.uid, `cancel-task ${task.uid}`, ref.idempotencyKey, {});
  const { runUid } = await deps.responses.respondFirst(request, async () => ({ runUid: visibleRun(current) }));
  // Without the client's key, a repeated request fails because the run has ended.
  await deps.runs.cancelTree(caller, runUid, task.uid, request ? `task-${task.uid}-${request.key}` : "");
  const hasNewerRun = current !== undefined && (current.isHidden || current.runUid !== runUid);
  if (hasNewerRun) return task;
  return deps.tasks.update(
    task.factoryUid,
    task.uid,
    (now) => (now.stage === "CANCELLED" ? now : changeTask(now, { stage: "CANCELLED" }, deps.clock.now())),
    (next, before) =>
      taskUpdated(next, originOf(caller), ["stage"], { from: before.stage, byRootRun: caller.run?.rootRunUid }),
  );
}

/** Returns the uid of the current run. Errors: run_not_found · run_access_denied. */
function visibleRun(current: ConversationState | undefined): string {
  if (!current) throw notFound("run");
  if (!current.isHidden) return current.runUid;
  throw new DomainError({
    kind: "permission_denied",
    reason: "run_access_denied",
    message: "You have no access to the task's current run, so you cannot cancel it.",
  });
}
