import { parseCron, slotsUntil, type Cron } from "@millwright/cron";
import type { OverlapPolicy, Schedule, ScheduleUid } from "./schedule.ts";

/**
 * `due`: being fired; `buffered`: waiting for the end of an earlier run. Others are final, except that a run found
 * later makes a slot fired.
 */
export const SLOT_STATES = ["due", "buffered", "fired", "skipped", "missed"] as const;
export type SlotState = (typeof SLOT_STATES)[number];

/** One time at which a schedule came due, and its result. */
export type Slot = {
  readonly slotAt: Date;
  readonly state: SlotState;
  readonly reason: string | null;
  readonly message: string | null;
  readonly runUid: string | null;
  readonly decidedAt: Date | null;
};

/** Slots recorded after one outage, at most: a week of minutes. */
export const LEDGER_MAX = 10_000;

/** A slot up to this late counts as on time: it came due between two polls, or many came due at the same time. */
export const ON_TIME_SECONDS = 10;

export type PlannedSlot = { readonly slotAt: Date; readonly state: "due" | "missed"; readonly reason: string | null };
export type Plan = { readonly slots: readonly PlannedSlot[]; readonly next: Date | null };

/** Returns the slots of a schedule that have passed by `now`. */
export const planSlots = (
  rule: Pick<Schedule, "cronSchedule" | "timeZone" | "catchUpSeconds">,
  first: Date,
  now: Date,
): Plan => planRule({ ...rule, cron: parseCron(rule.cronSchedule, "schedule") }, first, now);

/**
 * Returns the slots from `first` that have passed by `now`, and the next one. The newest is due, unless it is beyond
 * both the catch-up window and the on-time limit; older ones are missed.
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

/** A slot under a lease, with the current state of its schedule. */
export type ClaimedSlot = {
  readonly scheduleUid: ScheduleUid;
  readonly slotAt: Date;
  readonly state: "due" | "buffered";
  /** How often it was claimed; above 1 the slot may already have created its run. */
  readonly attempts: number;
  readonly schedule: Schedule;
  readonly isDeleted: boolean;
  /** A later slot has come due since. */
  readonly isSuperseded: boolean;
  /** Another slot of the schedule is buffered. */
  readonly hasBuffered: boolean;
  /** Beyond both the catch-up window and the on-time limit. */
  readonly isLate: boolean;
};

/** A run that has not ended. */
export type LiveRun = { readonly uid: string; readonly causeKey: string | undefined };

/** The decision about a claimed slot. */
export type Decision =
  | { readonly state: "fired"; readonly runUid: string }
  | { readonly state: "skipped"; readonly reason: "paused" | "deleted" | "overlap" }
  | { readonly state: "skipped"; readonly reason: "spawn_failed"; readonly message: string }
  | { readonly state: "missed"; readonly reason: "catch_up_window" | "superseded" }
  /** Checked again after `afterMs`. */
  | { readonly state: "due" | "buffered"; readonly afterMs: number; readonly message?: string };

/** Decides what needs no call: the schedule is deleted or paused, or the slot is out of date. */
export function decideLocally({ isDeleted, schedule, state, isSuperseded, isLate }: ClaimedSlot): Decision | undefined {
  if (isDeleted) return { state: "skipped", reason: "deleted" };
  if (!schedule.enabled) return { state: "skipped", reason: "paused" };
  if (state === "buffered") return undefined; // it waits for a run without a time limit
  if (isSuperseded) return { state: "missed", reason: "superseded" };
  return isLate ? { state: "missed", reason: "catch_up_window" } : undefined;
}

/** Decides a slot while a run of an earlier slot is active. */
export function decideOverlap(
  policy: Exclude<OverlapPolicy, "allow">,
  { state }: Pick<ClaimedSlot, "state">,
  afterMs: number,
): Decision | "cancel_live_runs" {
  if (policy === "cancel_other") return "cancel_live_runs";
  return state === "buffered" || policy === "buffer_one"
    ? { state: "buffered", afterMs }
    : { state: "skipped", reason: "overlap" };
}

/** Returns the permanent deduplication key of a slot's run. */
export const causeKeyOf = ({ scheduleUid, slotAt }: Pick<ClaimedSlot, "scheduleUid" | "slotAt">): string =>
  `${CAUSE}${scheduleUid}:${slotAt.toISOString()}`;

/** Returns the slot that a cause names; undefined for causes that are not slots. */
export function slotOfCause(cause: string): { scheduleUid: string; slotAt: Date } | undefined {
  const [, scheduleUid, slotAt] = /^schedule:([0-9a-f-]{36}):(\d{4}-.+Z)$/.exec(cause) ?? [];
  return scheduleUid && slotAt ? { scheduleUid, slotAt: new Date(slotAt) } : undefined;
}

const CAUSE = "schedule:";
