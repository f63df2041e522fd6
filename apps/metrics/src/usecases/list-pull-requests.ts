import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import type { Cursors } from "@millwright/paging";
import { PULL_REQUEST_STATES, type PullRequestFilter, type PullRequestPosition } from "../domain/pull-request-list.ts";
import type { FactoryPullRequest } from "../store/factory-pull-request-row.ts";
import type { MetricsQueries } from "../store/metrics-queries.ts";
import { pageSizeOf } from "./page-size.ts";
import { resolveFactory, type FactoryScope, type ResolveScopeDeps } from "./resolve-scope.ts";

export type ListPullRequestsDeps = ResolveScopeDeps &
  Pick<MetricsQueries, "pullRequests"> & { readonly cursors: Cursors };

export type ListPullRequestsRequest = PullRequestFilter & {
  readonly factoryUid: string;
  /** 0 = 50. */
  readonly pageSize: number;
  readonly pageToken: string;
};

export type PullRequestPage = {
  readonly scope: FactoryScope;
  readonly pullRequests: readonly FactoryPullRequest[];
  readonly nextPageToken: string;
};

const LIMITS = { default: 50, max: 500 };
const LIST = "pull requests";

/**
 * Lists the pull requests that runs of a factory produced. Errors: those of `resolveFactory` · limit_invalid ·
 * state_invalid · invalid_cursor.
 */
export async function listPullRequests(
  deps: ListPullRequestsDeps,
  caller: Caller,
  request: ListPullRequestsRequest,
): Promise<PullRequestPage> {
  const scope = await resolveFactory(deps, caller, request.factoryUid);
  const limit = pageSizeOf(request.pageSize, LIMITS);
  const filter = filterOf(request);
  const bind = { ...filter, factoryUid: scope.factory.uid };
  const after =
    request.pageToken === "" ? undefined : positionOf(deps.cursors.open(LIST, boundValues(bind), request.pageToken));
  const rows = await deps.pullRequests.list(scope.factory.uid, filter, after, limit + 1);
  const pullRequests = rows.slice(0, limit);
  const last = rows.length > limit ? pullRequests.at(-1) : undefined;
  const position = last && [last.openedAt?.toISOString() ?? null, last.urlKey];
  return { scope, pullRequests, nextPageToken: position ? deps.cursors.seal(LIST, boundValues(bind), position) : "" };
}

/** Spells the same filter in the same way, so that a cursor stays valid for it. */
function filterOf({
  repo,
  states,
  openedAfter,
  openedBefore,
  mergedAfter,
  mergedBefore,
  updatedAfter,
}: PullRequestFilter): PullRequestFilter {
  const unknown = states.find((state) => !PULL_REQUEST_STATES.some((known) => known === state));
  if (unknown !== undefined)
    throw invalidArgument("state_invalid", `state must be open, draft, merged or closed (got "${unknown}").`);
  const sorted = [...new Set(states)].toSorted();
  return {
    repo: repo.toLowerCase(),
    states: sorted,
    openedAfter,
    openedBefore,
    mergedAfter,
    mergedBefore,
    updatedAfter,
  };
}

const boundValues = (bind: PullRequestFilter & { readonly factoryUid: string }): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(bind).map(([name, value]) => [name, value instanceof Date ? value.toISOString() : value]),
  );

/** A cursor opens to what `listPullRequests` has sealed. */
function positionOf(sealed: readonly unknown[]): PullRequestPosition {
  const [openedAt, urlKey] = sealed as [string | null, string];
  return { openedAt: openedAt === null ? null : new Date(openedAt), urlKey };
}
