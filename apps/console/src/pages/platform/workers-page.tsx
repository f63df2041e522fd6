import type { ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { TextFilter } from "../../ui/filters.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time, useNow } from "../../ui/time.tsx";

type Worker = components["schemas"]["ConnectedSelfHostedWorker"];
const REFRESH_MS = 5_000;
/** Workers send heartbeats more often than this. */
const SILENT_MS = 60_000;

const COLUMNS: readonly Column<Worker>[] = [
  { title: "Worker", cell: ({ worker_host: host }) => <SafeText>{host}</SafeText> },
  { title: "Heartbeat", cell: (worker) => <Heartbeat worker={worker} /> },
  { title: "Connections", isNumber: true, cell: ({ connection_count: count }) => count },
  { title: "Connected", cell: ({ connected_at: at }) => <Time at={at} /> },
  { title: "Sandbox", cell: ({ sandbox }) => <SafeText>{sandbox}</SafeText> },
  {
    title: "Sandbox features",
    cell: ({ sandbox_features: features }) => <SafeText>{features.join(", ") || "–"}</SafeText>,
  },
];

function Heartbeat({ worker: { last_seen_at: at } }: { worker: Worker }): ReactNode {
  const isSilent = useNow() - Date.parse(at) > SILENT_MS;
  return (
    <span className={isSilent ? "badge bad" : "badge good"}>
      <Time at={at} />
    </span>
  );
}

/** The team's workers that are connected. */
export default function WorkersPage(): ReactNode {
  const { q } = getRouteApi("/workers").useSearch();
  const navigate = useNavigate({ from: "/workers" });
  const { data, error, refetch } = useQuery({
    queryKey: ["workers"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/connected-self-hosted-workers", { signal })),
    refetchInterval: REFRESH_MS,
  });
  const term = (q ?? "").toLowerCase();
  const workers = data?.workers.filter(({ worker_host: host, sandbox }) =>
    `${host} ${sandbox}`.toLowerCase().includes(term),
  );
  return (
    <Page
      title="Workers"
      subtitle="The team's own workers, which connect to the platform and execute its runs."
      actions={<CopyCommands path="/agent/connected-self-hosted-workers" cli="worker list" />}
    >
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!data && !error && <p className="soft">Loading…</p>}
      {data?.workers.length === 0 && (
        <EmptyState title="No worker of the team is connected">
          Runs execute on the platform&apos;s own workers, which are not listed, or wait if there are none. To execute
          runs on your machines, create a key for workers under <Link to="/keys">API keys</Link>, then run{" "}
          <code>npx millwright worker start</code> there.
        </EmptyState>
      )}
      {workers && data && data.workers.length > 0 && (
        <>
          <div className="filters" role="search">
            <TextFilter
              label="Search workers"
              value={q}
              onChange={(next) => void navigate({ search: { q: next }, replace: true })}
            />
          </div>
          {workers.length === 0 ? (
            <EmptyState title="No worker matches the search">Change or clear the search.</EmptyState>
          ) : (
            <DataTable
              caption="Connected workers"
              columns={COLUMNS}
              rows={workers}
              keyOf={({ worker_host: host, sandbox }) => `${host} ${sandbox}`}
            />
          )}
        </>
      )}
    </Page>
  );
}
