import { useCallback, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { listRuns } from "../../api/queries.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { dollars } from "../../ui/money.ts";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { sourceText } from "../../ui/run-source.ts";
import { SafeText } from "../../ui/safe-text.tsx";
import { stringifySearch } from "../../ui/search-params.ts";
import { StateBadge } from "../../ui/state-badge.tsx";
import { readableDuration, Time } from "../../ui/time.tsx";
import { QueueReason } from "./queue-reason.tsx";
import { RunFilters } from "./run-filters.tsx";
import { hasFilters, runsQuery, type RunsSearch } from "./runs-search.ts";

type RunItem = components["schemas"]["RunItem"];
const PAGE_SIZE = 50;

const COLUMNS: readonly Column<RunItem>[] = [
  {
    title: "Run",
    sortBy: "title",
    cell: (run) => (
      <Link to="/runs/$runId" params={{ runId: run.run_id }} className="primary-link truncate">
        <SafeText>{run.title}</SafeText>
      </Link>
    ),
  },
  {
    title: "State",
    cell: (run) => (
      <>
        <StateBadge state={run.state} />
        {run.state === "QUEUED" && <QueueReason runId={run.run_id} />}
      </>
    ),
  },
  {
    title: "Agent",
    sortBy: "agent",
    cell: (run) => <SafeText>{run.executor?.display_name ?? run.agent_config?.name ?? "–"}</SafeText>,
  },
  { title: "Source", cell: (run) => <span className="soft small">{run.source ? sourceText(run.source) : "–"}</span> },
  { title: "Created", sortBy: "created_at", cell: (run) => <Time at={run.created_at} /> },
  { title: "Updated", sortBy: "updated_at", cell: (run) => <Time at={run.updated_at} /> },
  { title: "Time", isNumber: true, cell: (run) => (run.run_time ? readableDuration(run.run_time) : "–") },
  { title: "Cost", isNumber: true, cell: (run) => costText(run) },
];

function costText({ request_usage: usage }: RunItem): string {
  if (!usage) return "–";
  const { inference_cost_usd: inference = 0, compute_cost_usd: compute = 0, platform_cost_usd: platform = 0 } = usage;
  return dollars(inference + compute + platform);
}

/** Every run of the team that matches the filters. */
export default function RunsPage(): ReactNode {
  const search = getRouteApi("/runs").useSearch();
  const navigate = useNavigate({ from: "/runs" });
  const change = useCallback(
    (changes: Partial<RunsSearch>) =>
      void navigate({ search: (old) => ({ ...old, cursor: undefined, ...changes }), replace: !("cursor" in changes) }),
    [navigate],
  );
  const { cursor, ...filters } = search;
  const query = runsQuery(filters);
  return (
    <Page
      title="Runs"
      actions={
        <CopyCommands path={`/agent/runs${stringifySearch({ ...query, metadata: undefined })}`} cli="run list" />
      }
    >
      <RunFilters search={search} onChange={change} />
      <ListView
        queryKey={["runs", "list", filters]}
        load={(at, signal) =>
          listRuns({ ...query, limit: PAGE_SIZE, ...(at === undefined ? {} : { cursor: at }) }, signal)
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ runs }) => runs.length === 0}
        cursor={cursor}
        onCursor={(next) => change({ cursor: next })}
        empty={
          hasFilters(search) ? (
            <EmptyState title="No run matches the filters">Remove a filter to see more runs.</EmptyState>
          ) : (
            <EmptyState title="No runs yet">
              <Link to="/work" search={{ dialog: "dispatch" }}>
                Dispatch work
              </Link>{" "}
              to a factory, or run <code>npx millwright run create &apos;Look around.&apos; --watch</code>
            </EmptyState>
          )
        }
      >
        {({ runs }) => (
          <DataTable
            caption="Runs"
            columns={COLUMNS}
            rows={runs}
            keyOf={({ run_id: id }) => id}
            sort={{ by: search.sort_by ?? "updated_at", order: search.sort_order ?? "desc" }}
            onSort={({ by, order }) => change({ sort_by: by as RunsSearch["sort_by"], sort_order: order })}
          />
        )}
      </ListView>
    </Page>
  );
}
