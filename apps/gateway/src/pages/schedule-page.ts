import type { z } from "zod";
import type { ScheduledAgent, ScheduleSlot } from "../routes/triggers/schedule-schemas.ts";
import { page } from "./layout.ts";
import { markup, type Markup } from "./markup.ts";

export type SchedulePageData = {
  readonly schedule: z.input<typeof ScheduledAgent>;
  /** Slots, newest first. */
  readonly slots: readonly z.input<typeof ScheduleSlot>[];
  readonly runUrl: (runUid: string) => string;
};

/** Returns the page of a schedule. Runs that the schedule started link to it. */
export function schedulePage({ schedule, slots, runUrl }: SchedulePageData): string {
  const { name, cron_schedule: cron, time_zone: zone, enabled, prompt, history, last_spawn_error: fault } = schedule;
  return page(
    name,
    markup`<h1>${name}</h1>
<p><code>${cron}</code> <span class="meta">${zone ?? "UTC"} · ${enabled ? `next ${history?.next_run ?? "never"}` : "paused"}</span></p>
${fault ? markup`<p class="del">${fault}</p>` : markup``}
<div class="message">${prompt}</div>
<h2>Slots</h2><table>${slots.map((slot) => slotRow(slot, runUrl))}</table>`,
  );
}

const slotRow = (slot: SchedulePageData["slots"][number], runUrl: (runUid: string) => string): Markup =>
  markup`<tr><td>${slot.slot_at}</td><td>${slot.state}</td><td>${slot.run_id === undefined ? [slot.reason, slot.message].filter(Boolean).join(": ") : markup`<a href="${runUrl(slot.run_id)}">its run</a>`}</td></tr>`;
