import type { ReactNode } from "react";
import { nextSlot, parseCron } from "@millwright/cron";
import { DataTable, type Column } from "../../ui/data-table.tsx";
import { Time, useNow } from "../../ui/time.tsx";

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

/** Returns the next slots after an instant, by the rules of the scheduler. Throws if the expression is not valid. */
export function nextTimes(expression: string, zone: string, after: number): Date[] {
  const cron = parseCron(expression, "schedule");
  const times: Date[] = [];
  for (let at = nextSlot(cron, zone, new Date(after)); at && times.length < TIMES; at = nextSlot(cron, zone, at))
    times.push(at);
  return times;
}

/** The next ten times of a valid cron expression, in the viewer's zone and in its own. */
export function NextTimes({ cron, zone }: { cron: string; zone: string }): ReactNode {
  const now = useNow();
  const viewerZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const [viewer, own] = [formatIn(), formatIn(zone)];
  const columns: readonly Column<Date>[] = [
    { title: `Your zone (${viewerZone})`, cell: (at) => viewer.format(at) },
    ...(zone === viewerZone ? [] : [{ title: zone, cell: (at: Date) => own.format(at) }]),
    { title: "In", cell: (at) => <Time at={at.toISOString()} /> },
  ];
  return (
    <DataTable
      caption="Next ten times"
      columns={columns}
      rows={nextTimes(cron, zone, now)}
      keyOf={(at) => at.toISOString()}
    />
  );
}
