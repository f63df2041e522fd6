import { useCallback, type ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { api, dataOf } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ClearFilters, TextFilter } from "../../ui/filters.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { stringifySearch } from "../../ui/search-params.ts";
import { Time } from "../../ui/time.tsx";
import { FactoryDialog } from "./factory-dialog.tsx";
import { managementText } from "./factory-queries.ts";

type Factory = components["schemas"]["Factory"];
const PAGE_SIZE = 50;

const COLUMNS: readonly Column<Factory>[] = [
  {
    title: "Factory",
    cell: ({ uid, name }) => (
      <Link to="/factories/$factoryUid" params={{ factoryUid: uid }} className="primary-link truncate">
        <SafeText>{name}</SafeText>
      </Link>
    ),
  },
  { title: "Alias", cell: ({ alias }) => <SafeText>{alias ?? "–"}</SafeText> },
  { title: "Definition", cell: ({ management }) => managementText(management) },
  { title: "Version", isNumber: true, cell: ({ definition_version: version }) => version },
  {
    title: "Queue",
    cell: ({ queue_paused: isPaused }) =>
      isPaused ? <span className="badge wait">Paused</span> : <span className="badge good">Open</span>,
  },
  { title: "Updated", cell: ({ updated_at: at }) => <Time at={at} /> },
];

/** The factories of the team. */
export default function FactoriesPage(): ReactNode {
  const { search, cursor, dialog } = getRouteApi("/factories").useSearch();
  const navigate = useNavigate({ from: "/factories" });
  const mayManage = useMay("factory.manage");
  const setCreating = (isCreating: boolean): void =>
    void navigate({ search: (old) => ({ ...old, dialog: isCreating ? "create" : undefined }), replace: true });
  const setSearch = useCallback(
    (text: string | undefined) => void navigate({ search: { search: text }, replace: true }),
    [navigate],
  );
  return (
    <Page
      title="Factories"
      actions={
        <>
          <Button look="primary" disabled={!mayManage} onClick={() => setCreating(true)}>
            <Plus size={14} aria-hidden />
            Create factory
          </Button>
          <CopyCommands path={`/factory${stringifySearch({ search })}`} cli="factory list" />
        </>
      }
    >
      {dialog === "create" && <FactoryDialog onClose={() => setCreating(false)} />}
      <div className="filters">
        <TextFilter label="Search factories" value={search} onChange={setSearch} />
        <ClearFilters isActive={search !== undefined} onClear={() => setSearch(undefined)} />
      </div>
      <ListView
        queryKey={["factories", "list", search ?? ""]}
        load={(at, signal) =>
          dataOf(api.GET("/api/v1/factory", { params: { query: { search, limit: PAGE_SIZE, cursor: at } }, signal }))
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ factories }) => factories.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { search, cursor: next } })}
        empty={
          search === undefined ? (
            <EmptyState title="No factory yet">
              A factory receives work and dispatches it to its agents. Create one here, or with{" "}
              <code>npx millwright factory create works</code>
            </EmptyState>
          ) : (
            <EmptyState title="No factory matches the search">Search for a part of its name or alias.</EmptyState>
          )
        }
      >
        {({ factories }) => (
          <DataTable caption="Factories" columns={COLUMNS} rows={factories} keyOf={({ uid }) => uid} />
        )}
      </ListView>
    </Page>
  );
}
