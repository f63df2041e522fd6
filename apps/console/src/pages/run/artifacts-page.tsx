import { useCallback, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { listRuns } from "../../api/queries.ts";
import { FactoryFilter } from "../../app/factory-filter.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ClearFilters, DateFilter, TextFilter } from "../../ui/filters.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { stringifySearch } from "../../ui/search-params.ts";
import { StateBadge } from "../../ui/state-badge.tsx";
import { Time } from "../../ui/time.tsx";
import type { ArtifactsSearch } from "./artifacts-search.ts";
import { ArtifactRow } from "./run-artifacts.tsx";

type RunItem = components["schemas"]["RunItem"];
type ArtifactItem = components["schemas"]["ArtifactItem"];
type Row = { readonly key: string; readonly artifact: ArtifactItem; readonly run: RunItem };

const RUNS_PER_PAGE = 30;
const TYPES = [
  ["FILE", "Files"],
  ["PLAN", "Plans"],
  ["SCREENSHOT", "Screenshots"],
  ["PULL_REQUEST", "Pull requests"],
  ["EXTERNAL_REFERENCE", "Links"],
] as const;

const COLUMNS: readonly Column<Row>[] = [
  { title: "Artifact", cell: ({ artifact, run }) => <ArtifactRow artifact={artifact} runId={run.run_id} /> },
  { title: "Created", cell: ({ artifact }) => <Time at={artifact.created_at} /> },
  {
    title: "Run",
    sortBy: "title",
    cell: ({ run }) => (
      <Link to="/runs/$runId" params={{ runId: run.run_id }} className="truncate">
        <SafeText>{run.title}</SafeText>
      </Link>
    ),
  },
  { title: "State of the run", cell: ({ run }) => <StateBadge state={run.state} /> },
  {
    title: "Agent",
    sortBy: "agent",
    cell: ({ run }) => <SafeText>{run.executor?.display_name ?? run.agent_config?.name ?? "–"}</SafeText>,
  },
  { title: "Run created", sortBy: "created_at", cell: ({ run }) => <Time at={run.created_at} /> },
];

/** The artifacts of one type of all runs of the team, in the order of their runs. */
export default function ArtifactsPage(): ReactNode {
  const search = getRouteApi("/artifacts").useSearch();
  const navigate = useNavigate({ from: "/artifacts" });
  const change = useCallback(
    (changes: Partial<ArtifactsSearch>) =>
      void navigate({ search: (old) => ({ ...old, cursor: undefined, ...changes }), replace: !("cursor" in changes) }),
    [navigate],
  );
  const changeText = useCallback((q: string | undefined) => change({ q }), [change]);
  const { cursor, factory, type = "FILE", sort_by: by = "created_at", sort_order: order = "desc", ...filters } = search;
  const query = {
    ...filters,
    artifact_type: type,
    sort_by: by,
    sort_order: order,
    ...(factory === undefined ? {} : { factory_uid: [factory] }),
  };
  const isFiltered = factory !== undefined || Object.values(filters).some((value) => value !== undefined);
  return (
    <Page title="Artifacts" actions={<CopyCommands path={`/agent/runs${stringifySearch(query)}`} />}>
      <div className="filters" role="group" aria-label="Type of artifacts">
        {TYPES.map(([value, label]) => (
          <Button
            key={value}
            isSmall
            look={type === value ? "default" : "quiet"}
            aria-pressed={type === value}
            onClick={() => change({ type: value })}
          >
            {label}
          </Button>
        ))}
      </div>
      <div className="filters" role="search">
        <TextFilter label="Search runs" value={search.q} onChange={changeText} />
        <FactoryFilter value={factory} onChange={(uid) => change({ factory: uid })} />
        <DateFilter
          label="Run created after"
          value={search.created_after}
          onChange={(at) => change({ created_after: at })}
        />
        <DateFilter label="Before" value={search.created_before} onChange={(at) => change({ created_before: at })} />
        <ClearFilters
          isActive={isFiltered}
          onClear={() =>
            change({ q: undefined, factory: undefined, created_after: undefined, created_before: undefined })
          }
        />
      </div>
      <ListView
        queryKey={["runs", "artifacts", query]}
        load={(at, signal) =>
          listRuns({ ...query, limit: RUNS_PER_PAGE, ...(at === undefined ? {} : { cursor: at }) }, signal)
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ runs }) => runs.length === 0}
        cursor={cursor}
        onCursor={(next) => change({ cursor: next })}
        empty={
          isFiltered ? (
            <EmptyState title="No artifact matches the filters">Remove a filter to see more.</EmptyState>
          ) : (
            <EmptyState title="No artifacts of this type yet">
              Plans, files, screenshots, links and pull requests that agents report are listed here. Dispatch work on
              the <Link to="/work">Work</Link> page, and ask for a file or a plan.
            </EmptyState>
          )
        }
      >
        {({ runs }) => (
          <DataTable
            caption="Artifacts"
            columns={COLUMNS}
            rows={rowsOf(runs, type)}
            keyOf={({ key }) => key}
            sort={{ by, order }}
            onSort={(sort) => change({ sort_by: sort.by as ArtifactsSearch["sort_by"], sort_order: sort.order })}
          />
        )}
      </ListView>
    </Page>
  );
}

const rowsOf = (runs: readonly RunItem[], type: string): Row[] =>
  runs.flatMap((run) =>
    (run.artifacts ?? [])
      .filter(({ artifact_type: each }) => each === type)
      .map((artifact, index) => ({ key: `${run.run_id} ${index}`, artifact, run })),
  );
