import type { NewEvent } from "@millwright/events";
import type { Task } from "../domain/task.ts";
import type { Origin } from "./origin.ts";

/** The stage before a change, and the root of the run that caused it, if any. */
export type StageChange = { readonly from: Task["stage"]; readonly byRootRun: string | undefined };

/**
 * Events of tasks. Payload: `{task_uid, factory_uid, conversation_uid, run_uid, stage}`, for updates the changed
 * members, and if the stage changed the previous one.
 */
export const taskCreated = (task: Task, origin: Origin): NewEvent => newEvent("created", task, origin);
export const taskUpdated = (task: Task, origin: Origin, changed: readonly string[], stage?: StageChange): NewEvent =>
  newEvent("updated", task, origin, {
    changed: [...changed],
    ...(stage &&
      stage.from !== task.stage && {
        previous_stage: stage.from,
        by_root_run_uid: stage.byRootRun,
      }),
  });

export const taskDeleted = (task: Task, origin: Origin): NewEvent => newEvent("deleted", task, origin);

const newEvent = (
  past: string,
  task: Task,
  origin: Origin,
  more: { changed?: string[]; previous_stage?: string; by_root_run_uid?: string } = {},
): NewEvent => ({
  type: `millwright.task.${past}.v1`,
  entity: "task",
  entityUid: task.uid,
  entityVersion: task.version,
  teamUid: task.teamUid,
  ...origin,
  payload: {
    task_uid: task.uid,
    factory_uid: task.factoryUid,
    conversation_uid: task.conversationUid,
    run_uid: task.runUid,
    stage: task.stage,
    ...more,
  },
});
