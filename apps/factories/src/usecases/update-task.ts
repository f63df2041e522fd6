import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { as, isUuid, type FactoryUid, type TaskUid } from "@millwright/ids";
import { changeTask, type Task, type TaskChange } from "../domain/task.ts";
import { originOf } from "../events/origin.ts";
import { taskUpdated } from "../events/task-events.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type UpdateTaskDeps = ScopeDeps & {
  tasks: {
    /** Loads the task locked and saves what the rule gives, unless it gives the same task. Errors: task_not_found. */
    update(factoryUid: FactoryUid, uid: TaskUid, change: (task: Task) => Task, fact: (task: Task, before: Task) => NewEvent): Promise<Task>;
  };
  clock: Clock;
};

/**
 * Replaces exactly the given members of a task; the last write wins. Nothing given changes nothing.
 *
 * Errors: factory_not_found · not_authorized · task_not_found · title_required · invalid_stage. Source: API spec §3.
 */
export async function updateTask(deps: UpdateTaskDeps, caller: Caller, ref: { factoryUid: string; taskUid: string }, change: TaskChange): Promise<Task> {
  const factory = await findFactory(deps, caller, ref.factoryUid, "task.manage");
  if (!isUuid(ref.taskUid)) throw notFound("task");
  const changed = Object.keys(change).sort();
  return deps.tasks.update(
    factory.uid,
    as<TaskUid>(ref.taskUid),
    (task) => changeTask(task, change, deps.clock.now()),
    (task, before) => taskUpdated(task, originOf(caller), changed, { from: before.stage, byRootRun: caller.run?.rootRunUid }),
  );
}
