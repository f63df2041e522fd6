import type { Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { as, isUuid, type TaskUid } from "@millwright/ids";
import { originOf } from "../events/origin.ts";
import { taskDeleted } from "../events/task-events.ts";
import type { TaskStore } from "../store/task-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type DeleteTaskDeps = ScopeDeps & {
  tasks: Pick<TaskStore, "delete">;
};

/**
 * Deletes a task. Its runs, artifacts and conversation are retained.
 * Errors: factory_not_found · not_authorized · task_not_found.
 */
export async function deleteTask(
  deps: DeleteTaskDeps,
  caller: Caller,
  ref: { factoryUid: string; taskUid: string },
): Promise<void> {
  const factory = await findFactory(deps, caller, ref.factoryUid, "task.manage");
  if (!isUuid(ref.taskUid)) throw notFound("task");
  await deps.tasks.delete(factory.uid, as<TaskUid>(ref.taskUid), (task) => taskDeleted(task, originOf(caller)));
}
