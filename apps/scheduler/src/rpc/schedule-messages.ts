import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { scheduler } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { optionalTimestamp } from "@millwright/rpc";
import type { GivenSettings, Owner, Schedule } from "../domain/schedule.ts";
import type { Slot } from "../domain/slot.ts";

export const toScheduleMessage = (schedule: Schedule): MessageInitShape<typeof scheduler.ScheduleSchema> => ({
  uid: schedule.uid,
  name: schedule.name,
  cronSchedule: schedule.cronSchedule,
  enabled: schedule.enabled,
  prompt: schedule.prompt,
  promptTruncated: schedule.isPromptTruncated ?? false,
  mode: schedule.mode,
  metadata: schedule.metadata,
  overlapPolicy: schedule.overlapPolicy,
  catchUpSeconds: schedule.catchUpSeconds,
  ownerType: schedule.owner.type,
  ownerUid: schedule.owner.uid,
  createdBy: schedule.creator.uid,
  updatedBy: schedule.updatedByUid,
  createdAt: timestampFromDate(schedule.createdAt),
  updatedAt: timestampFromDate(schedule.updatedAt),
  timeZone: schedule.timeZone ?? undefined,
  agentConfig: schedule.agentConfig ?? undefined,
  agentUid: schedule.agentUid ?? undefined,
  lastRanAt: optionalTimestamp(schedule.lastRanAt),
  nextRunAt: optionalTimestamp(schedule.nextSlotAt),
  lastSpawnError: pauseReason(schedule) ?? undefined,
});

/** A slot that fired while the schedule was being paused clears the error but not the reason of the pause. */
const pauseReason = ({ creatorLostAccess, lastSpawnError }: Schedule): string | null =>
  creatorLostAccess
    ? "Paused: its creator was removed from the team or became a viewer. Resume the schedule to run it as yourself."
    : lastSpawnError;

export const toSlotMessage = (slot: Slot): MessageInitShape<typeof scheduler.SlotSchema> => ({
  slotAt: timestampFromDate(slot.slotAt),
  state: slot.state,
  reason: slot.reason ?? "",
  message: slot.message ?? "",
  runUid: slot.runUid ?? "",
  decidedAt: optionalTimestamp(slot.decidedAt),
});

/** Errors: schedule_required. */
export function readSettings(message: scheduler.Schedule | undefined): GivenSettings {
  if (!message) throw invalidArgument("schedule_required", "The request must contain a schedule.");
  const {
    name,
    cronSchedule,
    timeZone,
    enabled,
    prompt,
    agentConfig,
    agentUid,
    mode,
    metadata,
    overlapPolicy,
    catchUpSeconds,
  } = message;
  return {
    name,
    cronSchedule,
    enabled,
    prompt,
    mode,
    metadata,
    overlapPolicy,
    timeZone: timeZone || null,
    agentUid: agentUid?.toLowerCase() || null,
    agentConfig,
    catchUpSeconds,
  };
}

/** Errors: owner_invalid. */
export function readOwner(message: scheduler.Schedule | undefined): Owner {
  const { ownerType = "", ownerUid = "" } = message ?? {};
  if ((ownerType !== "team" && ownerType !== "user") || ownerUid === "")
    throw invalidArgument(
      "owner_invalid",
      `owner.type must be "team" or "user" (got "${ownerType}"), with an owner uid.`,
    );
  return { type: ownerType, uid: ownerUid };
}
