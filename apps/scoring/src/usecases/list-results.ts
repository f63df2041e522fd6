import type { Caller } from "@millwright/caller";
import { isUuid } from "@millwright/ids";
import { clampPageSize, type Cursors } from "@millwright/paging";
import type { Result, ResultPosition } from "../domain/result.ts";
import type { Scorer } from "../domain/scorer.ts";
import type { ResultStore } from "../store/result-store.ts";
import { findScorer, type ScorerScopeDeps } from "./scope.ts";

export type ListResultsDeps = ScorerScopeDeps & {
  results: Pick<ResultStore, "list">;
  cursors: Cursors;
};

export type ListResultsRequest = {
  readonly factoryUid: string;
  readonly scorerUid: string;
  /** If not empty, all results of these runs are returned as one page. */
  readonly runUids: readonly string[];
  readonly pageSize: number;
  readonly pageToken: string;
  readonly includeReasons: boolean;
};

const PAGE = { default: 50, max: 100 };

/**
 * Returns a page of the current attempts of a scorer, one per run, newest first. Errors: scorer_not_found ·
 * not_authorized · invalid_cursor.
 */
export async function listResults(
  deps: ListResultsDeps,
  caller: Caller,
  request: ListResultsRequest,
): Promise<{ scorer: Scorer; results: Result[]; nextPageToken: string }> {
  const { scorer } = await findScorer(deps, caller, request.factoryUid, request.scorerUid, "factory.view");
  const { uid } = scorer;
  const withReasons = request.includeReasons;
  if (request.runUids.length > 0) {
    const results = await deps.results.list(uid, { runUids: request.runUids.filter(isUuid), withReasons });
    return { scorer, results, nextPageToken: "" };
  }
  const after =
    request.pageToken === "" ? undefined : positionOf(deps.cursors.open("scorer results", { uid }, request.pageToken));
  const limit = clampPageSize(request.pageSize, PAGE);
  const rows = await deps.results.list(uid, { after, limit: limit + 1, withReasons });
  const results = rows.slice(0, limit);
  const last = rows.length > limit ? results.at(-1) : undefined;
  return {
    scorer,
    results,
    nextPageToken: last
      ? deps.cursors.seal("scorer results", { uid }, [last.attemptedAt.toISOString(), last.attemptUid])
      : "",
  };
}

const positionOf = ([attemptedAt, attemptUid]: readonly unknown[]): ResultPosition => ({
  attemptedAt: new Date(String(attemptedAt)),
  attemptUid: String(attemptUid),
});
