import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError, invalidArgument } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { checkConfigurations, type GivenConfiguration } from "../domain/configuration-rules.ts";
import { checkAgentUid, checkSuite, checkTask, checkTasks, suiteIdentity } from "../domain/suite-rules.ts";
import type { SuiteTask, SuiteTaskUid, SuiteWithTasks, TaskContent } from "../domain/suite.ts";
import { suiteDeleted, suiteUpdated } from "../events/suite-events.ts";
import { originOf } from "../events/origin.ts";
import type { SuiteStore } from "../store/suite-store.ts";
import { findSuiteAgent, requireTaskReferences, spawnableDescendants, type ReferenceDeps } from "./suite-references.ts";
import { findEditableSuite, type SuiteScopeDeps } from "./suite-scope.ts";

export type ChangeSuiteDeps = SuiteScopeDeps &
  ReferenceDeps & {
    suites: Pick<SuiteStore, "update" | "delete">;
    clock: Clock;
  };

export type SuiteRef = { readonly factoryUid: string; readonly suiteUid: string };

/** A task of a replacement. `uid` identifies an existing task; "" creates a new one. */
export type GivenTask = TaskContent & { readonly uid: string };

/** The fields to change. Absent fields are unchanged. */
export type SuitePatch = {
  readonly name?: string;
  readonly description?: string | null;
  readonly agentUid?: string;
  readonly factoryAgentType?: string;
  readonly configurations?: readonly GivenConfiguration[];
  readonly tasks?: readonly GivenTask[];
};

/** Returns the suite with its version incremented, and the event of the change. */
export function raised(next: SuiteWithTasks, caller: Caller, now: Date): { next: SuiteWithTasks; event: NewEvent } {
  const saved = { ...next, version: next.version + 1, updatedAt: now };
  return { next: saved, event: suiteUpdated(saved, originOf(caller)) };
}

/**
 * Changes the given fields; given tasks replace all tasks. Increments the version unless nothing changes. A change of
 * the agent also sets the agent type to the agent's name.
 *
 * Errors: suite_not_found · not_authorized · managed_by_files · suite_invalid · agent_not_found · agent_type_mismatch ·
 * run_not_found · suite_name_taken.
 */
export async function updateSuite(
  deps: ChangeSuiteDeps,
  caller: Caller,
  ref: SuiteRef,
  patch: SuitePatch,
): Promise<{ suite: SuiteWithTasks; descendants: string[] }> {
  const { factory, suite: found } = await findEditableSuite(deps, caller, ref);
  const { agentUid, factoryAgentType, configurations: givenConfigurations, ...rest } = patch;
  const tasks = patch.tasks?.map((task) => ({ ...checkTask(task), uid: task.uid.toLowerCase() }));
  if (tasks) {
    checkTasks(tasks);
    await requireTaskReferences(deps, caller, tasks, (task) => found.tasks.find(({ uid }) => uid === task.uid));
  }
  const isAgentChange = agentUid !== undefined || factoryAgentType !== undefined;
  const agent = isAgentChange
    ? await findSuiteAgent(deps, caller, factory, checkAgentUid(agentUid ?? found.agentUid), factoryAgentType?.trim())
    : undefined;

  const suite = await deps.suites.update(found.uid, (current) => {
    const { name, description } = checkSuite({
      ...current,
      ...(rest.name !== undefined && { name: rest.name }),
      ...(rest.description !== undefined && { description: rest.description }),
    });
    const next: SuiteWithTasks = {
      ...current,
      name,
      description,
      ...(agent && { agentUid: agent.uid, factoryAgentType: agent.name }),
      ...(givenConfigurations && {
        configurations: checkConfigurations(givenConfigurations, current.configurations, newUid),
      }),
      ...(tasks && { tasks: replacedTasks(current.tasks, tasks) }),
    };
    const isSame =
      suiteIdentity(next, next.tasks) === suiteIdentity(current, current.tasks) &&
      JSON.stringify(orderOf(next)) === JSON.stringify(orderOf(current));
    return isSame ? undefined : raised(next, caller, deps.clock.now());
  });
  return { suite, descendants: await spawnableDescendants(deps, caller, suite) };
}

const orderOf = ({ tasks, configurations }: SuiteWithTasks): string[] =>
  [...tasks, ...configurations].map(({ uid }) => uid);

/**
 * Returns the tasks of a replacement, with the uids and numbers of existing tasks. Errors: suite_invalid for a uid that
 * is unknown in the suite or given twice.
 */
function replacedTasks(current: readonly SuiteTask[], given: readonly GivenTask[]): SuiteTask[] {
  const seen = new Set<string>();
  return given.map(({ uid, ...content }) => {
    if (uid === "") return { ...content, uid: newUid<SuiteTaskUid>(), id: 0, slug: null };
    const known = current.find((task) => task.uid === uid);
    if (!known)
      throw invalidArgument(
        "suite_invalid",
        `The suite has no task ${JSON.stringify(uid)}; leave uid out for a new one.`,
        { field: "tasks" },
      );
    if (seen.has(uid)) throw invalidArgument("suite_invalid", `The task ${uid} is given twice.`, { field: "tasks" });
    seen.add(uid);
    return { ...content, uid: known.uid, id: known.id, slug: known.slug };
  });
}

/** Hides a suite. Its benchmark runs remain readable. Errors: suite_not_found · not_authorized · managed_by_files. */
export async function deleteSuite(deps: ChangeSuiteDeps, caller: Caller, ref: SuiteRef): Promise<void> {
  const { suite } = await findEditableSuite(deps, caller, ref);
  await deps.suites.delete(suite.uid, deps.clock.now(), (deleted) => suiteDeleted(deleted, originOf(caller)));
}

/** Returns the error for a title that another task uses. Clients must not retry the request automatically. */
export const taskTitleTaken = (title: string): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "task_title_taken",
    message: `The suite has another task with the title ${JSON.stringify(title)}.`,
    metadata: { title },
  });
