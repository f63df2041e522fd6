import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import { as, isUuid, type FactoryUid, type TaskUid } from "@millwright/ids";
import { changeTask, readStage, type RunVersion, type Task, type TaskChange } from "../domain/task.ts";
import { originOf } from "../events/origin.ts";
import { taskUpdated } from "../events/task-events.ts";
import type { TaskStore } from "../store/task-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type UpdateTaskDeps = ScopeDeps & {
  tasks: Pick<TaskStore, "find" | "update">;
  runs: ScopeDeps["runs"] & { currentRunOf(teamUid: string, conversationUid: string): Promise<RunVersion | undefined> };
  clock: Clock;
};

/**
 * Replaces exactly the given members of a task; the last write wins. An empty change changes nothing. A new stage is
 * stored with the version of the current run, so that an earlier cancellation is not applied to it later.
 * Errors: factory_not_found · not_authorized · task_not_found · title_required · invalid_stage.
 */
export async function updateTask(
  deps: UpdateTaskDeps,
  caller: Caller,
  ref: { factoryUid: string; taskUid: string },
  change: TaskChange,
): Promise<Task> {
  const factory = await findFactory(deps, caller, ref.factoryUid, "task.manage");
  if (!isUuid(ref.taskUid)) throw notFound("task");
  const taskUid = as<TaskUid>(ref.taskUid);
  const stageRunVersion =
    change.stage === undefined ? undefined : await currentRun(deps, factory.uid, taskUid, change.stage);
  const changed = Object.keys(change).sort();
  return deps.tasks.update(
    factory.uid,
    taskUid,
    (task) => changeTask(task, change, deps.clock.now(), stageRunVersion),
    (task, before) =>
      taskUpdated(task, originOf(caller), changed, { from: before.stage, byRootRun: caller.run?.rootRunUid }),
  );
}

async function currentRun(
  deps: UpdateTaskDeps,
  factoryUid: FactoryUid,
  uid: TaskUid,
  stage: string,
): Promise<RunVersion | undefined> {
  readStage(stage);
  const task = await deps.tasks.find(factoryUid, uid);
  if (!task) throw notFound("task");
  return deps.runs.currentRunOf(task.teamUid, task.conversationUid);
}
