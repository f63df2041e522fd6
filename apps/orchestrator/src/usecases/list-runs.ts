import type { Caller } from "@millwright/caller";
import { clampPageSize, type Cursors } from "@millwright/paging";
import {
  checkRunList,
  openedPosition,
  sealedPosition,
  type RunListQuery,
  type RunListRequest,
  type RunPosition,
} from "../domain/run-list.ts";
import type { Run } from "../domain/run.ts";

export type ListRunsDeps = {
  /** Errors: run_not_found. */
  readonly getVisibleRun: (caller: Caller, uid: string) => Promise<Run>;
  readonly listRuns: (
    caller: Caller,
    query: RunListQuery,
    after: RunPosition | undefined,
    limit: number,
  ) => Promise<readonly { readonly run: Run; readonly position: RunPosition }[]>;
  /** Runs that may match `query`, whose texts have words similar to those of its search; the newest of them. */
  readonly findSimilar: (caller: Caller, query: RunListQuery) => Promise<readonly string[]>;
  readonly cursors: Cursors;
};

export type RunPage = { readonly runs: readonly Run[]; readonly nextPageToken: string };

const PAGE = { default: 20, max: 500 };

/**
 * Runs the caller may see, sorted as asked. Under any writes, runs committed before the first page whose sort key does not
 * change appear exactly once, others at most once. A page is never empty with a token to follow.
 *
 * A search whose words no run has lists the runs with similar words instead, such as those with a typo, as far as they are found in time.
 *
 * Errors: invalid_cursor · invalid_sort · invalid_state · invalid_source · run_not_found (an ancestor that is absent or not visible).
 */
export async function listVisibleRuns(
  deps: ListRunsDeps,
  caller: Caller,
  request: RunListRequest,
  pageSize: number,
  pageToken: string,
): Promise<RunPage> {
  const query = checkRunList(request);
  const bind = bound(query);
  const after = pageToken === "" ? undefined : openedPosition(deps.cursors.open("runs", bind, pageToken));
  const ancestor =
    query.ancestorRunUid === undefined ? undefined : await deps.getVisibleRun(caller, query.ancestorRunUid);
  const limit = clampPageSize(pageSize, PAGE);
  // One more than shown tells whether there is another page, without counting.
  const exact = { ...query, ...(ancestor ? { ancestorRunUid: ancestor.uid } : {}) };
  const found = after?.isSimilar ? [] : await deps.listRuns(caller, exact, after, limit + 1);
  const isSimilar =
    found.length === 0 && (after === undefined || after.isSimilar === true) && query.search !== undefined;
  const rows = isSimilar ? await listSimilar(deps, caller, exact, after, limit + 1) : found;
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return {
    runs: shown.map(({ run }) => run),
    nextPageToken: last ? deps.cursors.seal("runs", bind, sealedPosition({ ...last.position, isSimilar })) : "",
  };
}

async function listSimilar(
  { findSimilar, listRuns }: ListRunsDeps,
  caller: Caller,
  query: RunListQuery,
  after: RunPosition | undefined,
  limit: number,
): ReturnType<ListRunsDeps["listRuns"]> {
  const runUids = await findSimilar(caller, query);
  if (runUids.length === 0) return [];
  const { search: _exact, ...filters } = query;
  return listRuns(caller, { ...filters, runUids }, after, limit);
}

/** What a cursor belongs to: everything that decides which rows there are and in which order. */
const bound = (query: RunListQuery): Record<string, unknown> => ({
  ...query,
  createdAfter: query.createdAfter?.getTime(),
  createdBefore: query.createdBefore?.getTime(),
  updatedAfter: query.updatedAfter?.getTime(),
});
