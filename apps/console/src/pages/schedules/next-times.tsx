import type { ReactNode } from "react";
import { nextSlot, parseCron } from "@millwright/cron";
import type { components } from "../../gen/api.ts";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { Card } from "../../ui/page.tsx";
import { Time, useNow } from "../../ui/time.tsx";

type Schedule = components["schemas"]["ScheduledAgent"];
const TIMES = 10;

const formatIn = (timeZone?: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat(undefined, {
    weekday: "short",
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZoneName: "short",
    timeZone,
  });

/** Returns the next slots after an instant, by the rules of the scheduler. */
function nextTimes({ cron_schedule: text, time_zone: zone }: Schedule, after: number): Date[] {
  const cron = parseCron(text, "schedule");
  const times: Date[] = [];
  for (let at = nextSlot(cron, zone, new Date(after)); at && times.length < TIMES; at = nextSlot(cron, zone, at))
    times.push(at);
  return times;
}

/** The next ten times of a schedule, in the viewer's zone and in its own. */
export function NextTimes({ schedule }: { schedule: Schedule }): ReactNode {
  const now = useNow();
  const viewerZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zone = schedule.time_zone ?? "UTC";
  const [viewer, own] = [formatIn(), formatIn(zone)];
  const columns: readonly Column<Date>[] = [
    { title: `Your zone (${viewerZone})`, cell: (at) => viewer.format(at) },
    ...(zone === viewerZone ? [] : [{ title: zone, cell: (at: Date) => own.format(at) }]),
    { title: "In", cell: (at) => <Time at={at.toISOString()} /> },
  ];
  return (
    <Card title={schedule.enabled ? "Next ten times" : "Next ten times if resumed"}>
      <DataTable
        caption="Next ten times"
        columns={columns}
        rows={nextTimes(schedule, now)}
        keyOf={(at) => at.toISOString()}
      />
    </Card>
  );
}
