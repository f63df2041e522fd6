import type { Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import { as, isUuid, type ConversationUid, type FactoryUid, type RunUid, type TaskUid } from "@millwright/ids";
import type { Task } from "../domain/task.ts";
import type { TaskStore } from "../store/task-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type FindTaskDeps = ScopeDeps & {
  tasks: Pick<TaskStore, "find" | "findByConversation" | "findByFirstRun">;
  runs: ScopeDeps["runs"] & {
    /** Returns the conversation of the run's root ancestor, or undefined if no such run is visible to the caller. */
    conversationOf(caller: Caller, runUid: string): Promise<string | undefined>;
  };
};

/**
 * Returns a live task of a factory.
 * Errors: factory_not_found · not_authorized · task_not_found (absent, malformed, of another factory).
 */
export async function getTask(deps: FindTaskDeps, caller: Caller, factoryUid: string, taskUid: string): Promise<Task> {
  const factory = await findFactory(deps, caller, factoryUid, "factory.view");
  return found(isUuid(taskUid) ? await deps.tasks.find(factory.uid, as<TaskUid>(taskUid)) : undefined);
}

/**
 * Returns the live task of this factory that is bound to a conversation.
 * Errors: conversation_id_required, and as getTask.
 */
export async function getTaskByConversation(
  deps: FindTaskDeps,
  caller: Caller,
  factoryUid: string,
  conversationUid: string,
): Promise<Task> {
  if (conversationUid === "") throw invalidArgument("conversation_id_required", "conversation_id is required.");
  const factory = await findFactory(deps, caller, factoryUid, "factory.view");
  return found(await byConversation(deps, factory.uid, conversationUid));
}

/**
 * Returns the live task of this factory whose run tree contains a run. The run that a task was created for also finds
 * the task after a retry has moved it to another conversation.
 * Errors: run_id_required, and as getTask.
 */
export async function getTaskByRun(
  deps: FindTaskDeps,
  caller: Caller,
  factoryUid: string,
  runUid: string,
): Promise<Task> {
  if (runUid === "") throw invalidArgument("run_id_required", "run_id is required.");
  const factory = await findFactory(deps, caller, factoryUid, "factory.view");
  const conversationUid = isUuid(runUid) ? await deps.runs.conversationOf(caller, runUid) : undefined;
  if (conversationUid === undefined) return found(undefined);
  return found(
    (await byConversation(deps, factory.uid, conversationUid)) ??
      (await deps.tasks.findByFirstRun(factory.uid, as<RunUid>(runUid))),
  );
}

const byConversation = async (deps: FindTaskDeps, factoryUid: FactoryUid, uid: string): Promise<Task | undefined> =>
  isUuid(uid) ? deps.tasks.findByConversation(factoryUid, as<ConversationUid>(uid)) : undefined;

function found(task: Task | undefined): Task {
  if (task) return task;
  throw notFound("task");
}
