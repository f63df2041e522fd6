import type { Caller, Verb } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { as, isUuid } from "@millwright/ids";
import type { SuiteTask, SuiteUid, SuiteWithTasks } from "../domain/suite.ts";
import type { SuiteStore } from "../store/suite-store.ts";
import { managedByFiles } from "./scorer-references.ts";
import { findFactory, type FactoryView, type ScopeDeps } from "./scope.ts";

export type SuiteScopeDeps = ScopeDeps & {
  suites: Pick<SuiteStore, "findWithTasks">;
};

/**
 * Returns the factory of a request about benchmarks and checks the caller's permission. Run tokens have no access: a
 * trial must not read its own success criteria.
 *
 * Errors: factory_not_found · not_authorized.
 */
export async function findBenchmarkFactory(
  deps: ScopeDeps,
  caller: Caller,
  factoryUid: string,
  verb: Verb,
): Promise<FactoryView> {
  if (caller.run) throw notFound("factory");
  return findFactory(deps, caller, factoryUid, verb);
}

/**
 * Returns a suite of a factory with the tasks of the same version, and checks the caller's permission. Errors: those of
 * `findBenchmarkFactory` · suite_not_found (absent, malformed or of another factory).
 */
export async function findSuite(
  deps: SuiteScopeDeps,
  caller: Caller,
  ref: { factoryUid: string; suiteUid: string },
  verb: Verb,
): Promise<{ factory: FactoryView; suite: SuiteWithTasks }> {
  const factory = await findBenchmarkFactory(deps, caller, ref.factoryUid, verb);
  const suite = isUuid(ref.suiteUid)
    ? await deps.suites.findWithTasks(as<SuiteUid>(ref.suiteUid.toLowerCase()))
    : undefined;
  if (!suite || suite.factoryUid !== factory.uid) throw notFound("suite");
  return { factory, suite };
}

/**
 * Returns a suite that can be changed through the API. Errors: those of `findSuite` · managed_by_files (conflict):
 * files define it.
 */
export async function findEditableSuite(
  deps: SuiteScopeDeps,
  caller: Caller,
  ref: { factoryUid: string; suiteUid: string },
): Promise<{ factory: FactoryView; suite: SuiteWithTasks }> {
  const found = await findSuite(deps, caller, ref, "factory.manage");
  requireEditable(found.suite);
  return found;
}

/** Errors: managed_by_files (conflict): files define the suite. */
export function requireEditable({ slug }: SuiteWithTasks): void {
  if (slug !== null) throw managedByFiles(`The files below benchmarks/${slug} define this suite; change it there.`);
}

/** Returns a task of a suite by its uid. Errors: task_not_found. */
export function taskOf(suite: SuiteWithTasks, taskUid: string): SuiteTask {
  const task = suite.tasks.find(({ uid }) => uid === taskUid.toLowerCase());
  if (!task) throw notFound("task");
  return task;
}
