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
  /**
   * Returns the newest runs that match the filters of `query` and have words similar to those of its search. Returns
   * none if that takes too long.
   */
  readonly findSimilarRuns: (caller: Caller, query: RunListQuery) => Promise<readonly string[]>;
  readonly cursors: Cursors;
};

export type RunPage = { readonly runs: readonly Run[]; readonly nextPageToken: string };

const PAGE = { default: 20, max: 500 };

/**
 * Returns a page of the runs that the caller may see, in the requested order. Under concurrent writes, a run that was
 * committed before the first page and whose sort key does not change appears exactly once; other runs appear at most
 * once. A page with a next page token is never empty.
 *
 * If no run contains the words of a search, runs with similar words are listed instead, for example if a word is
 * misspelled. If the search for similar words takes too long, the page is empty.
 *
 * Errors: invalid_cursor · invalid_sort · invalid_state · invalid_source · run_not_found (an ancestor that is absent or
 * not visible).
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
  // One row more than the page shows whether there is another page, without counting.
  const exact = { ...query, ancestorRunUid: ancestor?.uid };
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
  { findSimilarRuns, listRuns }: ListRunsDeps,
  caller: Caller,
  query: RunListQuery,
  after: RunPosition | undefined,
  limit: number,
): ReturnType<ListRunsDeps["listRuns"]> {
  const runUids = await findSimilarRuns(caller, query);
  if (runUids.length === 0) return [];
  const { search: _exact, ...filters } = query;
  return listRuns(caller, { ...filters, runUids }, after, limit);
}

/** Returns what a cursor is bound to: everything that decides which rows exist and in which order. */
const bound = (query: RunListQuery): Record<string, unknown> => ({
  ...query,
  createdAfter: query.createdAfter?.getTime(),
  createdBefore: query.createdBefore?.getTime(),
  updatedAfter: query.updatedAfter?.getTime(),
});
