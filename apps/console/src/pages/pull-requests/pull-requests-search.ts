import * as v from "valibot";
import type { operations } from "../../gen/api.ts";
import { searchList, searchText } from "../../ui/search-params.ts";

type Query = NonNullable<operations["getFactoryUidPullRequests"]["parameters"]["query"]>;

/** The filters and place of the list, as in the URL. The names are those of `GET /factory/{uid}/pull-requests`. */
export const pullRequestsSearch = v.object({
  /** Uid of the factory. Default: the first one. */
  factory: searchText,
  repo: searchText,
  state: searchList,
  opened_after: searchText,
  opened_before: searchText,
  merged_after: searchText,
  merged_before: searchText,
  updated_after: searchText,
  cursor: searchText,
});

export type PullRequestsSearch = v.InferOutput<typeof pullRequestsSearch>;

/** Returns the query of the list without its place. The API checks the values. */
export const pullRequestsQuery = ({ factory: _factory, cursor: _cursor, ...filters }: PullRequestsSearch): Query =>
  filters as Query;
