import type { Database } from "@millwright/database";
import type { PullRequestFilter, PullRequestPosition } from "../domain/pull-request-list.ts";
import {
  FACTORY_PULL_REQUEST_COLUMNS,
  toFactoryPullRequest,
  type FactoryPullRequest,
  type FactoryPullRequestRow,
} from "./factory-pull-request-row.ts";

/** Returns the query that lists a factory's pull requests. */
export const pullRequestListStore = (database: Database) => ({
  /** Returns the pull requests after a position, newest opened first, those of unknown opening last, ties by URL. */
  async list(
    factoryUid: string,
    filter: PullRequestFilter,
    after: PullRequestPosition | undefined,
    limit: number,
  ): Promise<FactoryPullRequest[]> {
    const { rows } = await database.searches.query<FactoryPullRequestRow>(LIST, [
      factoryUid,
      filter.repo,
      filter.states,
      filter.openedAfter ?? null,
      filter.openedBefore ?? null,
      filter.mergedAfter ?? null,
      filter.mergedBefore ?? null,
      filter.updatedAfter ?? null,
      after !== undefined,
      after?.openedAt?.toISOString() ?? "-infinity",
      after?.urlKey ?? "",
      limit,
    ]);
    return rows.map(toFactoryPullRequest);
  },
});

/** Spelled as in the index of the list. */
const OPENED = "coalesce(f.opened_at, '-infinity')";

/** The first condition on the position is what the index can seek. */
const LIST = `
  SELECT ${FACTORY_PULL_REQUEST_COLUMNS}
    FROM factory_pull_requests f
   WHERE f.factory_uid = $1
     AND ($2::text = '' OR lower(f.repo_full_name) = lower($2))
     AND (cardinality($3::text[]) = 0 OR f.state = ANY ($3))
     AND ($4::timestamptz IS NULL OR f.opened_at > $4)
     AND ($5::timestamptz IS NULL OR f.opened_at < $5)
     AND ($6::timestamptz IS NULL OR f.merged_at > $6)
     AND ($7::timestamptz IS NULL OR f.merged_at < $7)
     AND ($8::timestamptz IS NULL OR f.updated_at > $8)
     AND (NOT $9::boolean OR ${OPENED} <= $10::timestamptz)
     AND (NOT $9::boolean OR ${OPENED} < $10::timestamptz OR f.url_key > $11)
   ORDER BY ${OPENED} DESC, f.url_key
   LIMIT $12`;
