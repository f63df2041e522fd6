import { useCallback, type ReactNode } from "react";
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
import { ChoiceFilter, ClearFilters, TextFilter } from "../../ui/filters.tsx";
import { EmptyState, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { ScheduleDialog } from "./schedule-dialog.tsx";

type Schedule = components["schemas"]["ScheduledAgent"];
const REFRESH_MS = 10_000;

const COLUMNS: readonly Column<Schedule>[] = [
  {
    title: "Schedule",
    cell: ({ id, name }) => (
      <Link to="/schedules/$scheduleId" params={{ scheduleId: id }} className="primary-link truncate">
        <SafeText>{name}</SafeText>
      </Link>
    ),
  },
  {
    title: "State",
    cell: ({ enabled }) =>
      enabled ? <span className="badge good">Enabled</span> : <span className="badge wait">Paused</span>,
  },
  { title: "Cron", cell: ({ cron_schedule: cron }) => <code>{cron}</code> },
  { title: "Zone", cell: ({ time_zone: zone }) => zone ?? "UTC" },
  { title: "Last run", cell: ({ history }) => <Time at={history?.last_ran} /> },
  { title: "Next run", cell: ({ enabled, history }) => <Time at={enabled ? history?.next_run : null} /> },
  {
    title: "Last error",
    cell: ({ last_spawn_error: problem }) =>
      problem ? (
        <span className="truncate">
          <SafeText>{problem}</SafeText>
        </span>
      ) : (
        "–"
      ),
  },
];

/** The schedules of the team, by name. */
export default function SchedulesPage(): ReactNode {
  const { q, state, dialog } = getRouteApi("/schedules").useSearch();
  const navigate = useNavigate({ from: "/schedules" });
  const setText = useCallback(
    (text: string | undefined) => void navigate({ search: (old) => ({ ...old, q: text }), replace: true }),
    [navigate],
  );
  const mayManage = useMay("schedule.manage");
  const setDialog = (next: "create" | undefined): void =>
    void navigate({ search: (old) => ({ ...old, dialog: next }), replace: true });
  const { data, error, refetch } = useQuery({
    queryKey: ["schedules"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/schedules", { signal })),
    refetchInterval: REFRESH_MS,
  });
  const schedules = data?.schedules.filter(
    ({ name, enabled }) =>
      (q === undefined || name.toLowerCase().includes(q.toLowerCase())) &&
      (state === undefined || enabled === (state === "enabled")),
  );
  return (
    <Page
      title="Schedules"
      actions={
        <>
          <Button look="primary" disabled={!mayManage} onClick={() => setDialog("create")}>
            <Plus size={14} aria-hidden />
            Create schedule
          </Button>
          <CopyCommands path="/agent/schedules" cli="schedule list" />
        </>
      }
    >
      {dialog === "create" && <ScheduleDialog onClose={() => setDialog(undefined)} />}
      <div className="filters">
        <TextFilter label="Search schedules" value={q} onChange={setText} />
        <ChoiceFilter
          label="State"
          value={state}
          choices={[
            { value: "enabled", label: "Enabled" },
            { value: "paused", label: "Paused" },
          ]}
          onChange={(value) =>
            void navigate({ search: (old) => ({ ...old, state: value as typeof state }), replace: true })
          }
        />
        <ClearFilters
          isActive={q !== undefined || state !== undefined}
          onClear={() => void navigate({ search: {}, replace: true })}
        />
      </div>
      {error && <ErrorView error={error} onRetry={() => void refetch()} />}
      {!schedules && !error && <p className="soft">Loading…</p>}
      {data?.schedules.length === 0 ? (
        <EmptyState title="No schedules yet">
          A schedule starts runs at set times. Create one here, or with{" "}
          <code>
            npx millwright schedule create nightly &apos;0 3 * * *&apos; --prompt &apos;Update dependencies.&apos;
          </code>
        </EmptyState>
      ) : schedules?.length === 0 ? (
        <EmptyState title="No schedule matches the filters">Remove a filter to see more schedules.</EmptyState>
      ) : (
        schedules && <DataTable caption="Schedules" columns={COLUMNS} rows={schedules} keyOf={({ id }) => id} />
      )}
    </Page>
  );
}
