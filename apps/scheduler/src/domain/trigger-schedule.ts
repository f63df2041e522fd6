import { nextSlot, parseCron } from "@millwright/cron";
import type { Uid } from "@millwright/ids";
import { CATCH_UP_DEFAULT_SECONDS } from "./schedule.ts";
import { planRule } from "./slot.ts";

export type TriggerScheduleUid = Uid<"trigger schedule">;

/** When an automation is to be triggered, as its file or its maker says. Source: factory-files §6.3. */
export type TriggerRule = { readonly name: string; readonly cron: string };

/** An automation as far as time triggers it. */
export type ScheduledAutomation = {
  readonly automationUid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** All of them; none while the automation is disabled. */
  readonly rules: readonly TriggerRule[];
};

/** One rule of one automation, for as long as the automation is there: also a rule that was taken away knows what it has fired. */
export type TriggerSchedule = TriggerRule &
  Omit<ScheduledAutomation, "rules"> & {
    readonly uid: TriggerScheduleUid;
    /** The first slot that nothing has become of; null while the rule is not in force. */
    readonly nextSlot: Date | null;
    /** The newest slot that something has become of: neither it nor an older one fires any more. */
    readonly lastSlot: Date | null;
    /** Raised with each slot. */
    readonly version: number;
  };

/** What became of the slots of one absence: the newest fires or is missed, the `missed` older ones are passed over. */
export type TakenSlots = { readonly slotAt: Date; readonly isFired: boolean; readonly missed: number };

/** Takes the slots that are over by `now`. Undefined: there are none. Always in UTC (factory-files §6.3). */
export function takeSlots(
  schedule: TriggerSchedule,
  now: Date,
): { readonly next: TriggerSchedule; readonly taken: TakenSlots } | undefined {
  if (!schedule.nextSlot || schedule.nextSlot > now) return undefined;
  const plan = planRule(
    { cron: parseCron(schedule.cron, "trigger"), timeZone: null, catchUpSeconds: CATCH_UP_DEFAULT_SECONDS },
    schedule.nextSlot,
    now,
  );
  const newest = plan.slots.at(-1)!;
  return {
    next: { ...schedule, nextSlot: plan.next, lastSlot: newest.slotAt, version: schedule.version + 1 },
    taken: { slotAt: newest.slotAt, isFired: newest.state === "due", missed: plan.slots.length - 1 },
  };
}

/**
 * The schedules of an automation from `since` on, given those it had, whose slots up to `since` were taken. A rule that stays
 * keeps its next slot; one that comes anew begins after `since`, and after whatever a schedule of its name has fired.
 */
export function reconcile(
  known: readonly TriggerSchedule[],
  automation: ScheduledAutomation,
  since: Date,
  newUid: () => TriggerScheduleUid,
): TriggerSchedule[] {
  const rules = new Map(automation.rules.map((rule) => [keyOf(rule), rule]));
  const { automationUid, factoryUid, teamUid } = automation;
  const have = new Map(known.map((schedule) => [keyOf(schedule), schedule]));
  const fresh = [...rules.values()]
    .filter((rule) => !have.has(keyOf(rule)))
    .map((rule): TriggerSchedule => ({
      ...rule,
      automationUid,
      factoryUid,
      teamUid,
      uid: newUid(),
      nextSlot: null,
      lastSlot: null,
      version: 0,
    }));
  return [...known, ...fresh].map((schedule) => {
    if (!rules.has(keyOf(schedule))) return { ...schedule, nextSlot: null };
    if (schedule.nextSlot) return schedule;
    const fired = known.filter(({ name }) => name === schedule.name).map(({ lastSlot }) => lastSlot?.getTime() ?? 0);
    return {
      ...schedule,
      nextSlot:
        nextSlot(parseCron(schedule.cron, "trigger"), null, new Date(Math.max(since.getTime(), ...fired))) ?? null,
    };
  });
}

const keyOf = ({ name, cron }: TriggerRule): string => JSON.stringify([name, cron]);
