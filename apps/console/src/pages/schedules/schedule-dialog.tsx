import { useState, type ReactNode } from "react";
import { useNavigate } from "@tanstack/react-router";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { isTimeZone, parseCron } from "@millwright/cron";
import { api, dataOf } from "../../api/client.ts";
import { useIdempotencyKey } from "../../api/idempotency.ts";
import type { components } from "../../gen/api.ts";
import { FormDialog } from "../../ui/form-dialog.tsx";
import { choicesOf, SelectField } from "../../ui/select-field.tsx";
import { TextField } from "../../ui/text-field.tsx";
import { useToasts } from "../../ui/toasts.tsx";
import { NextTimes } from "./next-times.tsx";

type Schedule = components["schemas"]["ScheduledAgent"];
type Overlap = components["schemas"]["OverlapPolicy"];

const OVERLAPS: Readonly<Record<Overlap, string>> = {
  skip: "Skip the slot",
  allow: "Start another run",
  buffer_one: "Start when the run has ended",
  cancel_other: "Cancel the run and start another",
};
const VIEWER_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Creates a schedule and opens it, or changes one. Shows the next ten times while the expression is edited. */
export function ScheduleDialog({ schedule, onClose }: { schedule?: Schedule; onClose: () => void }): ReactNode {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const toasts = useToasts();
  const [name, setName] = useState(schedule?.name ?? "");
  const [cron, setCron] = useState(schedule?.cron_schedule ?? "0 3 * * *");
  const [zone, setZone] = useState(schedule ? (schedule.time_zone ?? "UTC") : VIEWER_ZONE);
  const [prompt, setPrompt] = useState(schedule?.prompt ?? "");
  const [overlap, setOverlap] = useState<Overlap>(schedule?.overlap_policy ?? "skip");
  const [agent, setAgent] = useState(schedule?.agent_uid ?? "");
  const { data: agents } = useQuery({
    queryKey: ["identities", "choices"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/identities", { signal })),
  });
  const body = {
    name: name.trim(),
    cron_schedule: cron.trim(),
    time_zone: zone,
    prompt,
    overlap_policy: overlap,
    enabled: schedule?.enabled ?? true,
    ...(agent === "" ? {} : { agent_uid: agent }),
    // what the dialog does not edit stays as it is: the request replaces the schedule
    ...(schedule && {
      agent_config: schedule.agent_config,
      mode: schedule.mode,
      metadata: schedule.metadata,
      catch_up_seconds: schedule.catch_up_seconds,
    }),
  };
  const header = useIdempotencyKey(body);
  const save = useMutation({
    mutationFn: () =>
      schedule
        ? dataOf(
            api.PUT("/api/v1/agent/schedules/{scheduleId}", { params: { path: { scheduleId: schedule.id } }, body }),
          )
        : dataOf(api.POST("/api/v1/agent/schedules", { params: { header }, body })),
    onSuccess: ({ id }) => {
      void queries.invalidateQueries({ queryKey: ["schedules"] });
      toasts.success(schedule ? "Saved. Later slots use the change." : "Created.");
      if (schedule) onClose();
      else void navigate({ to: "/schedules/$scheduleId", params: { scheduleId: id } });
    },
  });
  const problem = problemOf(cron.trim(), zone);
  return (
    <FormDialog
      title={schedule ? "Edit the schedule" : "Create a schedule"}
      action={schedule ? "Save" : "Create"}
      isPending={save.isPending}
      isInvalid={problem !== undefined}
      error={save.error}
      onSubmit={() => save.mutate()}
      onClose={onClose}
    >
      <TextField label="Name" required value={name} onChange={setName} />
      <TextField
        label="Cron: minute, hour, day of month, month, day of week"
        isMono
        required
        value={cron}
        onChange={setCron}
      />
      <TextField label="Time zone" required list="time-zones" value={zone} onChange={setZone} />
      <datalist id="time-zones">
        {["UTC", ...Intl.supportedValuesOf("timeZone")].map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <label className="field">
        <span>Prompt</span>
        <textarea className="textarea" required value={prompt} onChange={(event) => setPrompt(event.target.value)} />
      </label>
      <SelectField
        label="Agent"
        value={agent}
        choices={[
          { value: "", label: "None: the team's defaults" },
          ...(agents?.agents ?? []).map(({ uid, name: each }) => ({ value: uid, label: each })),
        ]}
        onChange={setAgent}
      />
      <SelectField
        label="If a run is still active"
        value={overlap}
        choices={choicesOf(OVERLAPS)}
        onChange={setOverlap}
      />
      {problem === undefined ? (
        <NextTimes cron={cron.trim()} zone={zone} />
      ) : (
        <p className="notice bad" role="alert">
          {problem}
        </p>
      )}
    </FormDialog>
  );
}

function problemOf(cron: string, zone: string): string | undefined {
  if (!isTimeZone(zone)) return `“${zone}” is not an IANA time zone, such as Europe/Berlin.`;
  try {
    parseCron(cron, "schedule");
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
