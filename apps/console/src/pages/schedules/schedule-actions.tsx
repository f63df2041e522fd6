import { useState, type ReactNode } from "react";
import { useNavigate } from "@tanstack/react-router";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, dataOf, idempotencyKey } from "../../api/client.ts";
import { useMay } from "../../app/session.tsx";
import type { components } from "../../gen/api.ts";
import { Button } from "../../ui/button.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { ScheduleDialog } from "./schedule-dialog.tsx";

type Schedule = components["schemas"]["ScheduledAgent"];

/** Edits, pauses and resumes a schedule, and starts a run of its prompt and configuration. That run is not a slot. */
export function ScheduleActions({ schedule }: { schedule: Schedule }): ReactNode {
  const mayManage = useMay("schedule.manage");
  const mayRun = useMay("run.create");
  const [isEditing, setEditing] = useState(false);
  const queries = useQueryClient();
  const navigate = useNavigate();
  const toasts = useToasts();
  const params = { path: { scheduleId: schedule.id } };
  const toggle = useMutation({
    mutationFn: () =>
      dataOf(
        schedule.enabled
          ? api.POST("/api/v1/agent/schedules/{scheduleId}/pause", { params })
          : api.POST("/api/v1/agent/schedules/{scheduleId}/resume", { params }),
      ),
    onSuccess: ({ enabled }) => {
      toasts.success(enabled ? "Resumed. Times during the pause are not caught up." : "Paused. No slot fires.");
      return queries.invalidateQueries({ queryKey: ["schedules"] });
    },
    onError: (error: unknown) => toasts.failure(error),
  });
  const run = useMutation({
    mutationFn: () =>
      dataOf(
        api.POST("/api/v1/agent/runs", {
          params: { header: idempotencyKey() },
          body: {
            title: schedule.name,
            prompt: schedule.prompt === "" ? undefined : schedule.prompt,
            config: schedule.agent_config,
            agent_identity_uid: schedule.agent_uid,
            mode: schedule.mode,
            metadata: schedule.metadata,
            team: schedule.scope?.type !== "User",
          },
        }),
      ),
    onSuccess: ({ run_id: runId }) => void navigate({ to: "/runs/$runId", params: { runId } }),
    onError: (error: unknown) => toasts.failure(error),
  });
  return (
    <>
      <Button disabled={!mayManage} onClick={() => setEditing(true)}>
        Edit
      </Button>
      {isEditing && <ScheduleDialog schedule={schedule} onClose={() => setEditing(false)} />}
      <Button disabled={!mayManage || toggle.isPending} onClick={() => toggle.mutate()}>
        {schedule.enabled ? "Pause" : "Resume"}
      </Button>
      <Button disabled={!mayRun || run.isPending} onClick={() => run.mutate()}>
        Run now
      </Button>
    </>
  );
}
