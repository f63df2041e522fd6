import type { ReactNode } from "react";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { CopyCommands } from "../../ui/copy.tsx";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { ChoiceFilter, ClearFilters } from "../../ui/filters.tsx";
import { ListView } from "../../ui/list-view.tsx";
import { EmptyState } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { stringifySearch } from "../../ui/search-params.ts";
import { Time } from "../../ui/time.tsx";
import { SLOT_STATES } from "./slot-states.ts";

type Slot = components["schemas"]["ScheduleSlot"];
const PAGE_SIZE = 50;
const REFRESH_MS = 5_000;
const LOOKS: Readonly<Record<Slot["state"], string>> = {
  due: "busy",
  buffered: "wait",
  fired: "good",
  skipped: "",
  missed: "bad",
};

const COLUMNS: readonly Column<Slot>[] = [
  { title: "Slot", cell: ({ slot_at: at }) => <Time at={at} /> },
  { title: "State", cell: ({ state }) => <span className={`badge ${LOOKS[state]}`}>{state}</span> },
  {
    title: "Reason",
    cell: ({ message, reason }) => <SafeText>{message ?? reason ?? "–"}</SafeText>,
  },
  {
    title: "Run",
    cell: ({ run_id: runId }) =>
      runId === undefined ? (
        "–"
      ) : (
        <Link to="/runs/$runId" params={{ runId }}>
          Run
        </Link>
      ),
  },
  { title: "Decided", cell: ({ decided_at: at }) => <Time at={at} /> },
];

/** What happened at each slot of a schedule, and why. */
export function SlotLedger({ scheduleId }: { scheduleId: string }): ReactNode {
  const { state, cursor } = getRouteApi("/schedules/$scheduleId").useSearch();
  const navigate = useNavigate({ from: "/schedules/$scheduleId" });
  return (
    <>
      <div className="filters">
        <ChoiceFilter
          label="State"
          value={state}
          choices={SLOT_STATES.map((value) => ({ value, label: value }))}
          onChange={(value) => void navigate({ search: { state: value as typeof state }, replace: true })}
        />
        <ClearFilters isActive={state !== undefined} onClear={() => void navigate({ search: {}, replace: true })} />
        <CopyCommands
          path={`/agent/schedules/${scheduleId}/slots${stringifySearch({ state })}`}
          cli={`schedule slots ${scheduleId}${state === undefined ? "" : ` --state ${state}`}`}
        />
      </div>
      <ListView
        queryKey={["schedules", scheduleId, "slots", state ?? ""]}
        refetchMs={REFRESH_MS}
        load={(at, signal) =>
          dataOf(
            api.GET("/api/v1/agent/schedules/{scheduleId}/slots", {
              params: {
                path: { scheduleId },
                query: { state: state && [state], limit: PAGE_SIZE, cursor: at },
              },
              signal,
            }),
          )
        }
        pageInfoOf={({ page_info: info }) => info}
        isEmpty={({ slots }) => slots.length === 0}
        cursor={cursor}
        onCursor={(next) => void navigate({ search: { state, cursor: next } })}
        empty={
          state === undefined ? (
            <EmptyState title="No slots yet">The ledger begins with the first time that is due.</EmptyState>
          ) : (
            <EmptyState title="No slot has this state">Remove the filter to see all slots.</EmptyState>
          )
        }
      >
        {({ slots }) => <DataTable caption="Slots" columns={COLUMNS} rows={slots} keyOf={({ slot_at: at }) => at} />}
      </ListView>
    </>
  );
}
