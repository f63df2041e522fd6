import { actorOf, type Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { idempotentRequest } from "@millwright/idempotency";
import { newUid } from "@millwright/ids";
import { checkTask, checkTasks, isSameTask } from "../domain/suite-rules.ts";
import type { SuiteTask, SuiteTaskUid, SuiteWithTasks, TaskContent } from "../domain/suite.ts";
import type { AddedTask, SuiteStore } from "../store/suite-store.ts";
import { raised, taskTitleTaken, type ChangeSuiteDeps, type SuiteRef } from "./change-suite.ts";
import { requireTaskReferences } from "./suite-references.ts";
import { findEditableSuite, findSuite, requireEditable, taskOf, type SuiteScopeDeps } from "./suite-scope.ts";

export type AddTaskDeps = ChangeSuiteDeps & { suites: Pick<SuiteStore, "findAddedTask" | "addTask"> };

export type TaskRef = SuiteRef & { readonly taskUid: string };

/**
 * Adds a task at the end of the suite. If the suite has an identical task, it is returned instead.
 *
 * Errors: suite_not_found · not_authorized · managed_by_files · suite_invalid · run_not_found · task_title_taken
 * (conflict) · idempotency_mismatch (conflict).
 */
export async function addTask(
  deps: AddTaskDeps,
  caller: Caller,
  ref: SuiteRef,
  given: TaskContent,
  idempotencyKey: string,
): Promise<AddedTask> {
  const { suite: found } = await findSuite(deps, caller, ref, "factory.manage");
  const now = deps.clock.now();
  const content = checkTask(given);
  const body = { suiteUid: found.uid, task: content };
  const request = idempotentRequest(actorOf(caller).uid, "add-task", idempotencyKey, body);
  const earlier = request && (await deps.suites.findAddedTask(request, now));
  if (earlier) return earlier;

  requireEditable(found);
  const task = { ...content, uid: newUid<SuiteTaskUid>(), id: 0, slug: null };
  await requireTaskReferences(deps, caller, [task]);
  const change = (current: SuiteWithTasks) => {
    if (findIdentical(current, task)) return undefined;
    const next = { ...current, tasks: [...current.tasks, task] };
    checkTasks(next.tasks);
    return raised(next, caller, now);
  };
  const added = (suite: SuiteWithTasks): AddedTask => {
    const stored = findIdentical(suite, task)!;
    return { task: stored, created: stored.uid === task.uid };
  };
  return deps.suites.addTask(found.uid, change, added, request, now);
}

/** Returns the identical task of the suite. Errors: task_title_taken (another task has the title). */
function findIdentical(suite: SuiteWithTasks, task: TaskContent): SuiteTask | undefined {
  const namesake = suite.tasks.find(({ title }) => title === task.title);
  if (namesake && !isSameTask(namesake, task)) throw taskTitleTaken(task.title);
  return namesake;
}

/** Returns a task of a suite. Errors: suite_not_found · not_authorized · task_not_found. */
export async function getTask(deps: SuiteScopeDeps, caller: Caller, ref: TaskRef): Promise<SuiteTask> {
  const { suite } = await findSuite(deps, caller, ref, "factory.view");
  return taskOf(suite, ref.taskUid);
}

/**
 * Changes the given fields of a task. Absent fields are unchanged.
 *
 * Errors: suite_not_found · not_authorized · managed_by_files · task_not_found · suite_invalid · run_not_found ·
 * task_title_taken (conflict).
 */
export async function updateTask(
  deps: ChangeSuiteDeps,
  caller: Caller,
  ref: TaskRef,
  patch: Partial<TaskContent>,
): Promise<SuiteTask> {
  const { suite: found } = await findEditableSuite(deps, caller, ref);
  const earlier = taskOf(found, ref.taskUid);
  await requireTaskReferences(deps, caller, [checkTask({ ...earlier, ...patch })], () => earlier);
  const suite = await deps.suites.update(found.uid, (current) => {
    const task = taskOf(current, earlier.uid);
    const next: SuiteTask = { ...task, ...checkTask({ ...task, ...patch }) };
    if (isSameTask(task, next)) return undefined;
    if (current.tasks.some(({ uid, title }) => uid !== next.uid && title === next.title))
      throw taskTitleTaken(next.title);
    return raised(
      { ...current, tasks: current.tasks.map((each) => (each.uid === next.uid ? next : each)) },
      caller,
      deps.clock.now(),
    );
  });
  return taskOf(suite, earlier.uid);
}

/**
 * Deletes a task. Benchmark runs retain their frozen copy. Errors: suite_not_found · not_authorized · managed_by_files
 * · task_not_found.
 */
export async function deleteTask(deps: ChangeSuiteDeps, caller: Caller, ref: TaskRef): Promise<void> {
  const { suite: found } = await findEditableSuite(deps, caller, ref);
  const { uid } = taskOf(found, ref.taskUid);
  await deps.suites.update(found.uid, (current) => {
    if (!current.tasks.some((task) => task.uid === uid)) throw notFound("task");
    return raised({ ...current, tasks: current.tasks.filter((task) => task.uid !== uid) }, caller, deps.clock.now());
  });
}
