import { useState, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { ClearFilters, TextFilter } from "../../ui/filters.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { stringifySearch } from "../../ui/search-params.ts";
import { choicesOf, Select } from "../../ui/select-field.tsx";
import { Time } from "../../ui/time.tsx";
import { EnvironmentDialog } from "./environment-dialog.tsx";
import { environmentName } from "./environment-name.ts";

type Environment = components["schemas"]["Environment"];

const COLUMNS: readonly Column<Environment>[] = [
  {
    title: "Name",
    cell: (environment) => (
      <Link to="/environments/$uid" params={{ uid: environment.uid }} className="primary-link truncate">
        <SafeText>{environmentName(environment)}</SafeText>
      </Link>
    ),
  },
  { title: "Image", cell: ({ config }) => <SafeText>{config.docker_image ?? "–"}</SafeText> },
  {
    title: "Repositories",
    cell: ({ config }) => (
      <span className="truncate">
        <SafeText>{config.github_repos?.map(({ owner, repo }) => `${owner}/${repo}`).join(", ") || "–"}</SafeText>
      </span>
    ),
  },
  {
    title: "Setup",
    cell: ({ setup_failed: hasFailed }) =>
      hasFailed ? <span className="badge bad">Failed</span> : <span className="soft">–</span>,
  },
  { title: "Access", cell: ({ access }) => access },
  { title: "Last run", cell: ({ last_task_run_timestamp: at }) => <Time at={at} /> },
  { title: "Changed", cell: ({ last_updated: at }) => <Time at={at} /> },
];

/** The environments that the caller may use. */
export default function EnvironmentsPage(): ReactNode {
  const search = getRouteApi("/environments").useSearch();
  const navigate = useNavigate({ from: "/environments" });
  const mayManage = useMay("run.manage");
  const [isCreating, setCreating] = useState(false);
  const order = search.sort_by ?? "last_updated";
  const { data, error, refetch } = useQuery({
    queryKey: ["environments", order],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/environments", { params: { query: { sort_by: order } }, signal })),
  });
  const term = (search.q ?? "").toLowerCase();
  const environments = data?.environments.filter((environment) =>
    `${environmentName(environment)} ${environment.config.docker_image ?? ""}`.toLowerCase().includes(term),
  );
  return (
    <Page
      title="Environments"
      subtitle="Image, repositories, setup commands and secrets of runs."
      actions={
        <>
          <Button look="primary" disabled={!mayManage} onClick={() => setCreating(true)}>
            <Plus size={14} aria-hidden />
            Create environment
          </Button>
          <CopyCommands path={`/agent/environments${stringifySearch({ sort_by: order })}`} cli="environment list" />
        </>
      }
    >
      <div className="filters" role="search">
        <TextFilter
          label="Search environments"
          value={search.q}
          onChange={(q) => void navigate({ search: (old) => ({ ...old, q }), replace: true })}
        />
        <Select
          label="Order"
          value={order}
          choices={choicesOf({ last_updated: "Last changed first", name: "By name" })}
          onChange={(by) => void navigate({ search: (old) => ({ ...old, sort_by: by }), replace: true })}
        />
        <ClearFilters
          isActive={search.q !== undefined}
          onClear={() => void navigate({ search: (old) => ({ ...old, q: undefined }) })}
        />
      </div>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!data && !error && <p className="soft">Loading…</p>}
      {environments?.length === 0 &&
        (term === "" ? (
          <EmptyState title="No environments yet">
            Runs use the defaults of their worker. Create an environment to choose the image, repositories and setup
            commands of runs.
          </EmptyState>
        ) : (
          <EmptyState title="No environment matches the search">Change or clear the search.</EmptyState>
        ))}
      {environments && environments.length > 0 && (
        <DataTable caption="Environments" columns={COLUMNS} rows={environments} keyOf={({ uid }) => uid} />
      )}
      {isCreating && <EnvironmentDialog onClose={() => setCreating(false)} />}
    </Page>
  );
}
