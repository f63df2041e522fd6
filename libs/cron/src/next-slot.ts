import type { CalendarCron, Cron } from "./parse-cron.ts";
import { ZoneOffsets } from "./zone-offsets.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** The longest gap of any expression: 29 February across a century. */
const SEARCH_DAYS = 9 * 366;

/**
 * Returns the first slot after an instant; undefined if there is none within nine years.
 *
 * Without a zone: UTC. At clock changes, an expression for every hour (`*` in its hour field) follows elapsed time: it
 * is due whenever local time matches, again in a repeated hour. An expression that names hours follows the wall clock:
 * a repeated time is due at its first occurrence only, and a skipped time is due once, after the clock has moved on.
 */
export function nextSlot(cron: Cron, zone: string | null, after: Date): Date | undefined {
  const afterMs = after.getTime();
  const ms =
    cron.kind === "every" ? (Math.floor(afterMs / cron.everyMs) + 1) * cron.everyMs : calendarSlot(cron, zone, afterMs);
  return ms === undefined ? undefined : new Date(ms);
}

/** Returns the newest `max` slots from `first` up to `now`, ascending, and the next one. `first` is itself a slot. */
export function slotsUntil(
  cron: Cron,
  zone: string | null,
  first: Date,
  now: Date,
  max: number,
): { readonly slots: Date[]; readonly next: Date | undefined } {
  const slots: Date[] = [];
  let slot: Date | undefined = first;
  for (; slot && slot <= now; slot = nextSlot(cron, zone, slot)) {
    slots.push(slot);
    if (slots.length > 2 * max) slots.splice(0, slots.length - max);
  }
  return { slots: slots.slice(-max), next: slot };
}

function calendarSlot(cron: CalendarCron, zone: string | null, afterMs: number): number | undefined {
  if (zone === null || zone === "UTC") return nextLocal(cron, afterMs);
  const offsets = ZoneOffsets.of(zone);
  return cron.isEveryHour ? passing(cron, offsets, afterMs) : wallClock(cron, offsets, afterMs);
}

/** Returns the next instant whose local time matches: between two offset changes, local time behaves like UTC. */
function passing(cron: CalendarCron, offsets: ZoneOffsets, afterMs: number): number | undefined {
  let doneMs = afterMs;
  while (doneMs < afterMs + SEARCH_DAYS * DAY_MS) {
    const offsetMs = offsets.offsetAt(doneMs + 1);
    const local = nextLocal(cron, doneMs + offsetMs);
    if (local === undefined) return undefined;
    const changeMs = offsets.nextChange(doneMs + 1, local - offsetMs);
    if (changeMs === undefined) return local - offsetMs;
    doneMs = changeMs - 1; // the instant of the change may be a slot
  }
  return undefined;
}

/**
 * Returns the next wall-clock time that matches, at its only, first or substitute instant. These instants ascend with
 * local time.
 */
function wallClock(cron: CalendarCron, offsets: ZoneOffsets, afterMs: number): number | undefined {
  let local = nextLocal(cron, afterMs + offsets.offsetAt(afterMs));
  while (local !== undefined) {
    const instant = instantOf(offsets, local);
    if (instant > afterMs) return instant;
    local = nextLocal(cron, local);
  }
  return undefined;
}

/** Returns the first instant of a local time; for a skipped one, the instant after the clock has moved past it. */
function instantOf(offsets: ZoneOffsets, local: number): number {
  const candidates = [local - offsets.offsetAt(local - DAY_MS), local - offsets.offsetAt(local + DAY_MS)];
  const real = candidates.filter((ms) => ms + offsets.offsetAt(ms) === local);
  if (real.length > 0) return Math.min(...real);
  return offsets.nextChange(Math.min(...candidates), Math.max(...candidates)) ?? Math.max(...candidates);
}

/** Returns the first matching local time after a given one, both written as if they were UTC. */
function nextLocal(cron: CalendarCron, afterLocal: number): number | undefined {
  const from = (Math.floor(afterLocal / MINUTE_MS) + 1) * MINUTE_MS;
  let day = Math.floor(from / DAY_MS) * DAY_MS;
  for (let count = 0; count < SEARCH_DAYS; count += 1, day += DAY_MS) {
    if (!isDay(cron, day)) continue;
    for (const hour of cron.hours) {
      if (day + hour * HOUR_MS + HOUR_MS <= from) continue;
      for (const minute of cron.minutes) {
        const local = day + hour * HOUR_MS + minute * MINUTE_MS;
        if (local >= from) return local;
      }
    }
  }
  return undefined;
}

function isDay(cron: CalendarCron, day: number): boolean {
  const date = new Date(day);
  if (!cron.months.has(date.getUTCMonth() + 1)) return false;
  const [isOfMonth, isOfWeek] = [cron.days.has(date.getUTCDate()), cron.weekdays.has(date.getUTCDay())];
  return cron.isEitherDay ? isOfMonth || isOfWeek : isOfMonth && isOfWeek;
}
