import { useCallback, type ReactNode } from "react";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client.ts";
import { FactoryPage } from "../../app/factory-page.tsx";
import type { components } from "../../gen/api.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ChoicesFilter, ClearFilters, DateFilter, TextFilter } from "../../ui/filters.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { count } from "../../ui/money.ts";
import { EmptyState } from "../../ui/page.tsx";
import { PullRequestName, PullRequestState, RunLinks } from "../../ui/pull-request.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { stringifySearch } from "../../ui/search-params.ts";
import { Time } from "../../ui/time.tsx";
import { pullRequestsQuery, type PullRequestsSearch } from "./pull-requests-search.ts";

type PullRequest = components["schemas"]["FactoryPullRequest"];
const PAGE_SIZE = 50;
const STATES = ["open", "draft", "merged", "closed"].map((value) => ({ value, label: value }));
const DATES = [
  ["opened_after", "Opened after"],
  ["opened_before", "Opened before"],
  ["merged_after", "Merged after"],
  ["merged_before", "Merged before"],
  ["updated_after", "Updated after"],
] as const;

const COLUMNS: readonly Column<PullRequest>[] = [
  { title: "Pull request", cell: (pullRequest) => <PullRequestName pullRequest={pullRequest} /> },
  { title: "State", cell: ({ state }) => <PullRequestState state={state} /> },
  { title: "Author", cell: ({ author_login: login }) => <SafeText>{login ?? "–"}</SafeText> },
  { title: "Opened", cell: ({ opened_at: at }) => <Time at={at} /> },
  { title: "Merged", cell: ({ merged_at: at }) => <Time at={at} /> },
  {
    title: "Lines",
    isNumber: true,
    cell: ({ additions, deletions }) =>
      additions === null || deletions === null ? "–" : `+${count(additions)} −${count(deletions)}`,
  },
  {
    title: "Human interactions",
    isNumber: true,
    cell: ({ human_interactions: interactions }) => (interactions ? count(interactions.total) : "–"),
  },
  {
    title: "Code by people",
    cell: ({ human_code_change: isChanged, history_complete: isComplete }) =>
      isChanged === null || !isComplete ? "unknown" : isChanged ? "yes" : "no",
  },
  { title: "Runs", cell: ({ runs }) => <RunLinks runs={runs} /> },
];

/** The pull requests that a factory's runs produced. */
export default function PullRequestsPage(): ReactNode {
  const search = getRouteApi("/pull-requests").useSearch();
  const navigate = useNavigate({ from: "/pull-requests" });
  const change = useCallback(
    (changes: Partial<PullRequestsSearch>) =>
      void navigate({ search: (old) => ({ ...old, cursor: undefined, ...changes }), replace: !("cursor" in changes) }),
    [navigate],
  );
  const changeRepo = useCallback((repo: string | undefined) => change({ repo }), [change]);
  const query = pullRequestsQuery(search);
  const isFiltered = Object.values(query).some((value) => value !== undefined);
  const cleared = Object.fromEntries(Object.keys(query).map((name) => [name, undefined]));
  return (
    <FactoryPage
      title="Pull requests"
      uid={search.factory}
      onChoose={(factory) => change({ factory })}
      actions={({ uid }) => (
        <CopyCommands path={`/factory/${uid}/pull-requests${stringifySearch(query)}`} cli={`pr list ${uid}`} />
      )}
      filters={
        <>
          <TextFilter label="Repository" placeholder="owner/name" value={search.repo} onChange={changeRepo} />
          <ChoicesFilter
            label="State"
            values={search.state ?? []}
            choices={STATES}
            onChange={(state) => change({ state: state.length > 0 ? state : undefined })}
          />
          {DATES.map(([name, label]) => (
            <DateFilter key={name} label={label} value={search[name]} onChange={(value) => change({ [name]: value })} />
          ))}
          <ClearFilters isActive={isFiltered} onClear={() => change(cleared)} />
        </>
      }
    >
      {({ uid }) => (
        <ListView
          queryKey={["pull-requests", uid, query]}
          load={(cursor, signal) =>
            dataOf(
              api.GET("/api/v1/factory/{uid}/pull-requests", {
                params: { path: { uid }, query: { ...query, limit: PAGE_SIZE, cursor } },
                signal,
              }),
            )
          }
          pageInfoOf={({ page_info: info }) => info}
          isEmpty={({ data }) => data.length === 0}
          cursor={search.cursor}
          onCursor={(cursor) => change({ cursor })}
          empty={
            isFiltered ? (
              <EmptyState title="No pull request matches the filters">Remove a filter to see more.</EmptyState>
            ) : (
              <EmptyState title="No pull requests yet">
                Pull requests that runs of this factory report are listed here. Dispatch work on the Work page to get
                one.
              </EmptyState>
            )
          }
        >
          {({ data }) => <DataTable caption="Pull requests" columns={COLUMNS} rows={data} keyOf={({ url }) => url} />}
        </ListView>
      )}
    </FactoryPage>
  );
}
