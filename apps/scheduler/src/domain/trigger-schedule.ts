import { nextSlot, parseCron } from "@millwright/cron";
import type { Uid } from "@millwright/ids";
import { CATCH_UP_DEFAULT_SECONDS } from "./schedule.ts";
import { planRule } from "./slot.ts";

export type TriggerScheduleUid = Uid<"trigger schedule">;

/** A cron rule of an automation. */
export type TriggerRule = { readonly name: string; readonly cron: string };

/** An automation and its cron rules. */
export type ScheduledAutomation = {
  readonly automationUid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** Every rule, also while the automation is disabled. */
  readonly rules: readonly TriggerRule[];
};

/**
 * One rule of one automation. It exists as long as the automation, so that a removed rule still records its last slot.
 */
export type TriggerSchedule = TriggerRule &
  Omit<ScheduledAutomation, "rules"> & {
    readonly uid: TriggerScheduleUid;
    /** The first slot that was not handled yet; null while the rule is inactive. */
    readonly nextSlotAt: Date | null;
    /** The newest slot that fired or was missed: neither it nor an older one fires again. */
    readonly lastSlotAt: Date | null;
    /** Raised with each slot. */
    readonly version: number;
  };

/**
 * The slots that passed since the last check: the newest fires or is missed, the `missedCount` older ones are skipped.
 */
export type PassedSlots = { readonly slotAt: Date; readonly isFired: boolean; readonly missedCount: number };

/** Advances a schedule past the slots that have passed by `now`, in UTC. Returns undefined if there are none. */
export function advanceSlots(
  schedule: TriggerSchedule,
  now: Date,
): { readonly next: TriggerSchedule; readonly passed: PassedSlots } | undefined {
  if (!schedule.nextSlotAt || schedule.nextSlotAt > now) return undefined;
  const plan = planRule(
    { cron: parseCron(schedule.cron, "trigger"), timeZone: null, catchUpSeconds: CATCH_UP_DEFAULT_SECONDS },
    schedule.nextSlotAt,
    now,
  );
  const newest = plan.slots.at(-1)!;
  return {
    next: { ...schedule, nextSlotAt: plan.next, lastSlotAt: newest.slotAt, version: schedule.version + 1 },
    passed: { slotAt: newest.slotAt, isFired: newest.state === "due", missedCount: plan.slots.length - 1 },
  };
}

/**
 * Returns the schedules of an automation from `since`. Precondition: the slots of `known` up to `since` have fired. An
 * unchanged rule retains its next slot; a new one starts after `since` and after the last slot of any schedule with its
 * name.
 */
export function reconcile(
  known: readonly TriggerSchedule[],
  automation: ScheduledAutomation,
  since: Date,
  newUid: () => TriggerScheduleUid,
): TriggerSchedule[] {
  const rules = new Map(automation.rules.map((rule) => [keyOf(rule), rule]));
  const { automationUid, factoryUid, teamUid } = automation;
  const knownKeys = new Set(known.map(keyOf));
  const added = [...rules.values()]
    .filter((rule) => !knownKeys.has(keyOf(rule)))
    .map((rule): TriggerSchedule => ({
      ...rule,
      automationUid,
      factoryUid,
      teamUid,
      uid: newUid(),
      nextSlotAt: null,
      lastSlotAt: null,
      version: 0,
    }));
  return [...known, ...added].map((schedule) => {
    if (!rules.has(keyOf(schedule))) return { ...schedule, nextSlotAt: null };
    if (schedule.nextSlotAt) return schedule;
    const lastSlots = known
      .filter(({ name }) => name === schedule.name)
      .map(({ lastSlotAt }) => lastSlotAt?.getTime() ?? 0);
    return {
      ...schedule,
      nextSlotAt:
        nextSlot(parseCron(schedule.cron, "trigger"), null, new Date(Math.max(since.getTime(), ...lastSlots))) ?? null,
    };
  });
}

const keyOf = ({ name, cron }: TriggerRule): string => JSON.stringify([name, cron]);
