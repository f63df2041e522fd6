import * as v from "valibot";
import type { operations } from "../../gen/api.ts";
import { searchChoice, searchList, searchText } from "../../ui/search-params.ts";

type RunsQuery = NonNullable<operations["getAgentRuns"]["parameters"]["query"]>;

/** The filters, order and place of the run list, as in the URL. The names are those of `GET /agent/runs`. */
export const runsSearch = v.object({
  q: searchText,
  state: searchList,
  source: searchList,
  task_status: searchList,
  factory_uid: searchList,
  factory_only: searchChoice("true"),
  automation_id: searchText,
  schedule_id: searchText,
  conversation_id: searchText,
  ancestor_run_id: searchText,
  name: searchText,
  model_id: searchText,
  creator: searchText,
  executor: searchText,
  environment_id: searchText,
  skill: searchText,
  skill_spec: searchText,
  artifact_type: searchText,
  execution_location: searchChoice("LOCAL", "REMOTE"),
  created_after: searchText,
  created_before: searchText,
  updated_after: searchText,
  /** Metadata filters as `name=value`. */
  metadata: searchList,
  sort_by: searchChoice("updated_at", "created_at", "title", "agent"),
  sort_order: searchChoice("asc", "desc"),
  cursor: searchText,
});

export type RunsSearch = v.InferOutput<typeof runsSearch>;

/** Returns the query of `GET /agent/runs` for the search parameters of the page. The API checks the values. */
export function runsQuery({ metadata, factory_only: factoryOnly, ...search }: RunsSearch): RunsQuery {
  const pairs = (metadata ?? []).map((text) => {
    const [name = "", ...value] = text.split("=");
    return [name, value.join("=")] as const;
  });
  return {
    ...search,
    ...(factoryOnly ? { factory_only: "true" } : {}),
    ...(pairs.length > 0 ? { metadata: Object.fromEntries(pairs) } : {}),
  } as RunsQuery;
}

/** Returns whether any filter is set. */
export const hasFilters = ({ sort_by: _by, sort_order: _order, cursor: _cursor, ...filters }: RunsSearch): boolean =>
  Object.values(filters).some((value) => value !== undefined);
