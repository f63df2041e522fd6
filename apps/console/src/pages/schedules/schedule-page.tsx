import type { ReactNode } from "react";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import { CopyCommands, Id } from "../../ui/copy.tsx";
import { ErrorView } from "../../ui/error-view.tsx";
import { Card, Facts, Page } from "../../ui/page.tsx";
import { SafeText } from "../../ui/safe-text.tsx";
import { Time } from "../../ui/time.tsx";
import { NextTimes } from "./next-times.tsx";
import { ScheduleActions } from "./schedule-actions.tsx";
import { SlotLedger } from "./slot-ledger.tsx";

const REFRESH_MS = 10_000;

/** A schedule: its settings, its next times and the ledger of its slots. */
export default function SchedulePage(): ReactNode {
  const { scheduleId } = getRouteApi("/schedules/$scheduleId").useParams();
  const {
    data: schedule,
    error,
    refetch,
  } = useQuery({
    queryKey: ["schedules", scheduleId],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/schedules/{scheduleId}", { params: { path: { scheduleId } }, signal })),
    refetchInterval: REFRESH_MS,
  });
  if (!schedule)
    return error ? (
      <Page title="Schedule">
        <ErrorView error={error} onRetry={() => void refetch()} />
      </Page>
    ) : (
      <p className="soft">Loading…</p>
    );
  return (
    <Page
      title={schedule.name}
      subtitle={
        <span className="line">
          <span className={`badge ${schedule.enabled ? "good" : "wait"}`}>
            {schedule.enabled ? "Enabled" : "Paused"}
          </span>
          <Id value={scheduleId} />
        </span>
      }
      actions={
        <>
          <ScheduleActions schedule={schedule} />
          <CopyCommands path={`/agent/schedules/${scheduleId}`} cli={`schedule get ${scheduleId}`} />
        </>
      }
    >
      {schedule.last_spawn_error && (
        <section className="notice bad">
          <h2>The last slot started no run</h2>
          <p>
            <SafeText>{schedule.last_spawn_error}</SafeText>
          </p>
        </section>
      )}
      <div className="columns">
        <Card title="Settings">
          <div className="stack">
            <Facts
              entries={[
                ["Cron", <code key="cron">{schedule.cron_schedule}</code>],
                ["Zone", schedule.time_zone ?? "UTC"],
                ["If a run is still active", schedule.overlap_policy.replace("_", " ")],
                ["Fires late by at most", `${schedule.catch_up_seconds.toLocaleString()} seconds`],
                ["Scope", schedule.scope?.type === "User" ? "personal" : "team"],
                ["Model", schedule.agent_config?.model_id && <SafeText>{schedule.agent_config.model_id}</SafeText>],
                ["Last run", schedule.history?.last_ran && <Time at={schedule.history.last_ran} />],
                ["Created", <Time key="created" at={schedule.created_at} />],
                [
                  "Runs",
                  <Link key="runs" to="/runs" search={{ schedule_id: scheduleId }}>
                    Runs of this schedule
                  </Link>,
                ],
              ]}
            />
            <pre className="payload" tabIndex={0} role="region" aria-label="Prompt">
              <SafeText>{schedule.prompt}</SafeText>
            </pre>
          </div>
        </Card>
        <Card title={schedule.enabled ? "Next ten times" : "Next ten times if resumed"}>
          <NextTimes cron={schedule.cron_schedule} zone={schedule.time_zone ?? "UTC"} />
        </Card>
      </div>
      <h2>Slots</h2>
      <SlotLedger scheduleId={scheduleId} />
    </Page>
  );
}
