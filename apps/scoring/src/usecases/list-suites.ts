import type { Caller } from "@millwright/caller";
import { clampPageSize, type Cursors } from "@millwright/paging";
import type { Suite, SuiteWithTasks } from "../domain/suite.ts";
import type { SuiteStore } from "../store/suite-store.ts";
import type { ScopeDeps } from "./scope.ts";
import { spawnableDescendants, type ReferenceDeps } from "./suite-references.ts";
import { findBenchmarkFactory, findSuite, type SuiteScopeDeps } from "./suite-scope.ts";

export const SUITE_PAGE = { default: 50, max: 100 } as const;

export type ListSuitesDeps = ScopeDeps & {
  suites: Pick<SuiteStore, "list">;
  cursors: Cursors;
};

/**
 * Returns a page of the suites of a factory, without tasks, newest first, ties ordered by uid. Errors:
 * factory_not_found · not_authorized · invalid_cursor.
 */
export async function listSuites(
  deps: ListSuitesDeps,
  caller: Caller,
  request: { factoryUid: string; pageSize: number; pageToken: string },
): Promise<{ suites: Suite[]; nextPageToken: string }> {
  const factory = await findBenchmarkFactory(deps, caller, request.factoryUid, "factory.view");
  const bind = { factory: factory.uid };
  const [createdAt, uid] =
    request.pageToken === "" ? [] : (deps.cursors.open("suites", bind, request.pageToken) as [string, string]);
  const limit = clampPageSize(request.pageSize, SUITE_PAGE);
  const rows = await deps.suites.list(factory.uid, {
    limit: limit + 1,
    after: createdAt === undefined ? undefined : { createdAt: new Date(createdAt), uid: uid! },
  });
  const suites = rows.slice(0, limit);
  const last = rows.length > limit ? suites.at(-1) : undefined;
  return {
    suites,
    nextPageToken: last ? deps.cursors.seal("suites", bind, [last.createdAt.toISOString(), last.uid]) : "",
  };
}

export type GetSuiteDeps = SuiteScopeDeps & Pick<ReferenceDeps, "agents">;

/**
 * Returns a suite with its tasks and the uids of the agents that its agent can delegate to. Errors: suite_not_found ·
 * factory_not_found · not_authorized.
 */
export async function getSuite(
  deps: GetSuiteDeps,
  caller: Caller,
  ref: { factoryUid: string; suiteUid: string },
): Promise<{ suite: SuiteWithTasks; descendants: string[] }> {
  const { suite } = await findSuite(deps, caller, ref, "factory.view");
  return { suite, descendants: await spawnableDescendants(deps, caller, suite) };
}
