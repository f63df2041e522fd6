import type { NewEvent } from "@millwright/events";
import type { Task } from "../domain/task.ts";
import type { Origin } from "./origin.ts";

/** Facts about tasks. Payload: `{task_uid, factory_uid, conversation_uid, run_uid, stage}`, and for updates the changed members. */
export const taskCreated = (task: Task, origin: Origin): NewEvent => fact("created", task, origin);
export const taskUpdated = (task: Task, origin: Origin, changed: readonly string[]): NewEvent =>
  fact("updated", task, origin, { changed: [...changed] });

export const taskDeleted = (task: Task, origin: Origin): NewEvent => fact("deleted", task, origin);

const fact = (past: string, task: Task, origin: Origin, more: { changed?: string[] } = {}): NewEvent => ({
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
