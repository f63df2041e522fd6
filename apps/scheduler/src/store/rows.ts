import { PROMPT_PREVIEW_CHARACTERS } from "@millwright/errors";
import { as } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import type { OverlapPolicy, Owner, Schedule, ScheduleUid } from "../domain/schedule.ts";

export const SCHEDULE_COLUMNS = `
  s.uid, s.owner_type, s.owner_uid, s.name, s.cron_schedule, s.time_zone, s.enabled, s.prompt, s.agent_config, s.agent_uid, s.mode,
  s.metadata, s.overlap_policy, s.catch_up_seconds, s.creator_type, s.creator_uid, s.creator_lost_access, s.updated_by_uid, s.next_slot_at,
  s.last_ran_at, s.last_spawn_error, s.version, s.created_at, s.updated_at`;

/** The columns of lists, which contain only the beginning of the prompt. */
export const LISTED_SCHEDULE_COLUMNS = `
  ${SCHEDULE_COLUMNS.replace("s.prompt,", `left(s.prompt, ${PROMPT_PREVIEW_CHARACTERS}) AS prompt,`)},
  char_length(left(s.prompt, ${PROMPT_PREVIEW_CHARACTERS + 1})) > ${PROMPT_PREVIEW_CHARACTERS} AS is_prompt_truncated`;

export type ScheduleRow = {
  uid: string;
  owner_type: Owner["type"];
  owner_uid: string;
  name: string;
  cron_schedule: string;
  time_zone: string | null;
  enabled: boolean;
  prompt: string;
  agent_config: JsonObject | null;
  agent_uid: string | null;
  mode: string;
  metadata: Record<string, string>;
  overlap_policy: OverlapPolicy;
  catch_up_seconds: number;
  creator_type: string;
  creator_uid: string;
  creator_lost_access: boolean;
  updated_by_uid: string;
  next_slot_at: Date | null;
  last_ran_at: Date | null;
  last_spawn_error: string | null;
  version: number;
  created_at: Date;
  updated_at: Date;
  is_prompt_truncated?: boolean;
};

export const toSchedule = (row: ScheduleRow): Schedule => ({
  uid: as<ScheduleUid>(row.uid),
  owner: { type: row.owner_type, uid: row.owner_uid },
  name: row.name,
  cronSchedule: row.cron_schedule,
  timeZone: row.time_zone,
  enabled: row.enabled,
  prompt: row.prompt,
  isPromptTruncated: row.is_prompt_truncated,
  agentConfig: row.agent_config,
  agentUid: row.agent_uid,
  mode: row.mode,
  metadata: row.metadata,
  overlapPolicy: row.overlap_policy,
  catchUpSeconds: row.catch_up_seconds,
  creator: { type: row.creator_type, uid: row.creator_uid },
  creatorLostAccess: row.creator_lost_access,
  updatedByUid: row.updated_by_uid,
  nextSlotAt: row.next_slot_at,
  lastRanAt: row.last_ran_at,
  lastSpawnError: row.last_spawn_error,
  version: row.version,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});
