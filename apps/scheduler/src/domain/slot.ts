import { parseCron, slotsUntil, type Cron } from "@millwright/cron";
import type { OverlapPolicy, Schedule, ScheduleUid } from "./schedule.ts";

/** `due`: is being fired; `buffered`: waits for the end of an earlier run. The others are final, but that a run found later makes a slot fired. */
export const SLOT_STATES = ["due", "buffered", "fired", "skipped", "missed"] as const;
export type SlotState = (typeof SLOT_STATES)[number];

/** What became of one time at which a schedule came due. */
export type Slot = {
  readonly slotAt: Date;
  readonly state: SlotState;
  readonly reason: string | null;
  readonly message: string | null;
  readonly runUid: string | null;
  readonly decidedAt: Date | null;
};

/** The ledger names at most so many slots of one absence: a week of minutes. */
export const LEDGER_MAX = 10_000;

/** A slot that is so late is still on time: it comes due between two looks, and many may come due at once. */
export const ON_TIME_SECONDS = 10;

export type PlannedSlot = { readonly slotAt: Date; readonly state: "due" | "missed"; readonly reason: string | null };
export type Plan = { readonly slots: readonly PlannedSlot[]; readonly next: Date | null };

/** A schedule's slots that are over by `now`. */
export const planSlots = (
  rule: Pick<Schedule, "cronSchedule" | "timeZone" | "catchUpSeconds">,
  first: Date,
  now: Date,
): Plan => planRule({ ...rule, cron: parseCron(rule.cronSchedule, "schedule") }, first, now);

/**
 * The slots from `first` on that are over by `now`, and the one after them. The newest is due, unless it is later than the
 * catch-up window allows and not on time any more; the older ones are missed. Source: spec/decisions "missed slots".
 */
export function planRule(
  { cron, timeZone, catchUpSeconds }: { cron: Cron; timeZone: string | null; catchUpSeconds: number },
  first: Date,
  now: Date,
): Plan {
  const { slots: times, next = null } = slotsUntil(cron, timeZone, first, now, LEDGER_MAX);
  const newest = times.at(-1);
  if (!newest) return { slots: [], next: first };
  const isLate = (slotAt: Date): boolean =>
    now.getTime() - slotAt.getTime() > Math.max(catchUpSeconds, ON_TIME_SECONDS) * 1_000;
  return {
    slots: times.map((slotAt): PlannedSlot => {
      if (isLate(slotAt)) return { slotAt, state: "missed", reason: "catch_up_window" };
      return slotAt === newest
        ? { slotAt, state: "due", reason: null }
        : { slotAt, state: "missed", reason: "superseded" };
    }),
    next,
  };
}

/** A slot under the lease of whoever decides about it, with its schedule as it is now. */
export type ClaimedSlot = {
  readonly scheduleUid: ScheduleUid;
  readonly slotAt: Date;
  readonly state: "due" | "buffered";
  /** How often it was claimed; above 1 the slot may have made its run already. */
  readonly tries: number;
  readonly schedule: Schedule;
  readonly isDeleted: boolean;
  /** A later slot has come due meanwhile. */
  readonly isSuperseded: boolean;
  /** Another slot of the schedule waits for the end of a run. */
  readonly hasBuffered: boolean;
  /** Later than the catch-up window allows, and not on time any more. */
  readonly isLate: boolean;
};

/** What was decided about a claimed slot. */
export type Decision =
  | { readonly state: "fired"; readonly runUid: string }
  | { readonly state: "skipped"; readonly reason: "paused" | "deleted" | "overlap" }
  | { readonly state: "skipped"; readonly reason: "spawn_failed"; readonly message: string }
  | { readonly state: "missed"; readonly reason: "catch_up_window" | "superseded" }
  /** Looked at again after `afterMs`. */
  | { readonly state: "due" | "buffered"; readonly afterMs: number; readonly message?: string };

/** What needs no upstream service to be decided: the schedule is gone or paused, or the time of the slot is over. */
export function decideAlone({ isDeleted, schedule, state, isSuperseded, isLate }: ClaimedSlot): Decision | undefined {
  if (isDeleted) return { state: "skipped", reason: "deleted" };
  if (!schedule.enabled) return { state: "skipped", reason: "paused" };
  if (state === "buffered") return undefined; // it waits for a run, however long that takes
  if (isSuperseded) return { state: "missed", reason: "superseded" };
  return isLate ? { state: "missed", reason: "catch_up_window" } : undefined;
}

/** What a slot does while a run of an earlier slot lives. */
export function decideOverlap(
  policy: Exclude<OverlapPolicy, "allow">,
  { state }: Pick<ClaimedSlot, "state">,
  afterMs: number,
): Decision | "cancel the others" {
  if (policy === "cancel_other") return "cancel the others";
  return state === "buffered" || policy === "buffer_one"
    ? { state: "buffered", afterMs }
    : { state: "skipped", reason: "overlap" };
}

/** Names the run of a slot for ever, however often it is asked for. */
export const causeKeyOf = ({ scheduleUid, slotAt }: Pick<ClaimedSlot, "scheduleUid" | "slotAt">): string =>
  `${CAUSE}${scheduleUid}:${slotAt.toISOString()}`;

/** The slot that a cause names; undefined for other causes. */
export function slotOfCause(cause: string): { scheduleUid: string; slotAt: Date } | undefined {
  const [, scheduleUid, slotAt] = /^schedule:([0-9a-f-]{36}):(\d{4}-.+Z)$/.exec(cause) ?? [];
  return scheduleUid && slotAt ? { scheduleUid, slotAt: new Date(slotAt) } : undefined;
}

const CAUSE = "schedule:";
