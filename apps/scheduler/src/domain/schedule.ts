import { parseCron, isTimeZone, nextSlot } from "@millwright/cron";
import { DomainError, invalidArgument, requireConfigWithin, requireTextWithin } from "@millwright/errors";
import { isUuid, type Uid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";

export type ScheduleUid = Uid<"schedule">;
export type Owner = { readonly type: "team" | "user"; readonly uid: string };
/** The principal that runs of a schedule are created for. */
export type Creator = { readonly type: string; readonly uid: string };

/** What a slot does while a run of an earlier slot is active. */
export const OVERLAP_POLICIES = ["allow", "skip", "buffer_one", "cancel_other"] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

/** The settings that clients choose; time_zone, overlap_policy and catch_up_seconds are extensions. */
export type ScheduleSettings = {
  readonly name: string;
  readonly cronSchedule: string;
  /** IANA name; null: UTC. */
  readonly timeZone: string | null;
  readonly enabled: boolean;
  readonly prompt: string;
  readonly agentConfig: JsonObject | null;
  readonly agentUid: string | null;
  readonly mode: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly overlapPolicy: OverlapPolicy;
  /** How late a slot may still fire. */
  readonly catchUpSeconds: number;
};

export type Schedule = ScheduleSettings & {
  readonly uid: ScheduleUid;
  readonly owner: Owner;
  readonly creator: Creator;
  /**
   * The creator lost the right to create runs in the team, so the schedule is paused. Resuming makes the caller its
   * creator.
   */
  readonly creatorLostAccess: boolean;
  readonly updatedByUid: string;
  /** Set when only the beginning of the prompt was read, as in lists. */
  readonly isPromptTruncated?: boolean;
  /** The first slot without a row in the ledger; null while paused. */
  readonly nextSlotAt: Date | null;
  /** When the last successful run ended. */
  readonly lastRanAt: Date | null;
  readonly lastSpawnError: string | null;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** Settings as requested. An absent member gets its default; on replacement, an absent `agentConfig` is unchanged. */
export type GivenSettings = Omit<ScheduleSettings, "overlapPolicy" | "mode" | "agentConfig" | "catchUpSeconds"> & {
  readonly agentConfig?: JsonObject;
  readonly mode: string;
  readonly overlapPolicy: string;
  readonly catchUpSeconds?: number;
};

const NAME_MAX = 200;
export const CATCH_UP_DEFAULT_SECONDS = 86_400;
const CATCH_UP_MAX_SECONDS = 366 * 86_400; // a year
const MODES: readonly string[] = ["normal", "plan", "orchestrate"];
const METADATA_KEYS_MAX = 20;
const METADATA_VALUE_BYTES_MAX = 256;

/**
 * Returns the validated settings. `earlier` are the settings that they replace.
 *
 * Errors (invalid_argument): name_invalid · cron_invalid · time_zone_unknown · prompt_required · config_conflict ·
 * mode_unknown · overlap_policy_unknown · catch_up_invalid · metadata_invalid · agent_needs_team; agent_not_found (a
 * malformed uid); text_too_large (too_large).
 */
export function checkSettings(given: GivenSettings, owner: Owner, earlier?: ScheduleSettings): ScheduleSettings {
  const agentConfig =
    given.agentConfig === undefined
      ? (earlier?.agentConfig ?? null)
      : isEmpty(given.agentConfig)
        ? null
        : given.agentConfig;
  const settings = {
    ...given,
    name: given.name.trim(),
    cronSchedule: given.cronSchedule.trim(),
    agentConfig,
    mode: given.mode || "normal",
    overlapPolicy: (given.overlapPolicy || "allow") as OverlapPolicy,
    catchUpSeconds: given.catchUpSeconds ?? CATCH_UP_DEFAULT_SECONDS,
  };
  const nameLength = Array.from(settings.name).length;
  if (nameLength === 0 || nameLength > NAME_MAX)
    throw invalidArgument("name_invalid", `name must have 1 to ${NAME_MAX} characters (got ${nameLength}).`);
  parseCron(settings.cronSchedule, "schedule");
  requireTextWithin("The prompt", Buffer.byteLength(settings.prompt));
  if (agentConfig) requireConfigWithin("agent_config", agentConfig);
  if (settings.timeZone !== null && !isTimeZone(settings.timeZone))
    throw invalidArgument(
      "time_zone_unknown",
      `time_zone must be the name of an IANA time zone, such as Europe/Berlin (got "${settings.timeZone.slice(0, 100)}").`,
    );
  const { skill_spec: spec, skills } = agentConfig ?? {};
  const hasSkill = Boolean(spec) || (Array.isArray(skills) && skills.length > 0);
  if (settings.prompt.trim() === "" && !hasSkill)
    throw invalidArgument("prompt_required", "A schedule requires a prompt or a skill in agent_config.");
  if (spec !== undefined && skills !== undefined)
    throw invalidArgument(
      "config_conflict",
      "agent_config must not set both skill_spec and skills; remove one of them.",
    );
  if (!MODES.includes(settings.mode))
    throw invalidArgument("mode_unknown", `mode must be normal, plan or orchestrate (got "${settings.mode}").`);
  if (!OVERLAP_POLICIES.includes(settings.overlapPolicy))
    throw invalidArgument(
      "overlap_policy_unknown",
      `overlap_policy must be one of ${OVERLAP_POLICIES.join(", ")} (got "${settings.overlapPolicy}").`,
    );
  const { catchUpSeconds } = settings;
  if (!Number.isInteger(catchUpSeconds) || catchUpSeconds < 0 || catchUpSeconds > CATCH_UP_MAX_SECONDS)
    throw invalidArgument(
      "catch_up_invalid",
      `catch_up_seconds must be an integer between 0 and ${CATCH_UP_MAX_SECONDS} (got ${catchUpSeconds}).`,
    );
  checkMetadata(settings.metadata);
  if (settings.agentUid !== null && owner.type !== "team")
    throw invalidArgument("agent_needs_team", "agent_uid requires a schedule that a team owns.");
  if (settings.agentUid !== null && !isUuid(settings.agentUid))
    throw new DomainError({
      kind: "not_found",
      reason: "agent_not_found",
      message: "No such agent, or it is not visible to you.",
    });
  return settings;
}

const isEmpty = (config: JsonObject): boolean => Object.keys(config).length === 0;

function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  const entries = Object.entries(metadata);
  const isValid = entries.every(
    ([key, value]) => /^[A-Za-z0-9._-]{1,64}$/.test(key) && Buffer.byteLength(value) <= METADATA_VALUE_BYTES_MAX,
  );
  if (entries.length > METADATA_KEYS_MAX || !isValid) {
    throw invalidArgument(
      "metadata_invalid",
      `metadata must have at most ${METADATA_KEYS_MAX} keys of 1 to 64 characters (A-Z a-z 0-9 . _ -), each with a value of at ` +
        `most ${METADATA_VALUE_BYTES_MAX} bytes.`,
    );
  }
}

/** Returns the uid of the environment that agent_config names. */
export function environmentOf({ agentConfig }: Pick<ScheduleSettings, "agentConfig">): string | undefined {
  const uid = agentConfig?.["environment_id"];
  return typeof uid === "string" && uid !== "" ? uid : undefined;
}

/** Returns the first slot after an instant; null while the schedule is paused. */
export const slotAfter = (
  { cronSchedule, timeZone, enabled }: Pick<Schedule, "cronSchedule" | "timeZone" | "enabled">,
  after: Date,
): Date | null => (enabled && nextSlot(parseCron(cronSchedule, "schedule"), timeZone, after)) || null;

export const newSchedule = (
  uid: ScheduleUid,
  owner: Owner,
  creator: Creator,
  settings: ScheduleSettings,
  now: Date,
): Schedule => ({
  ...settings,
  uid,
  owner,
  creator,
  creatorLostAccess: false,
  updatedByUid: creator.uid,
  nextSlotAt: slotAfter(settings, now),
  lastRanAt: null,
  lastSpawnError: null,
  version: 1,
  createdAt: now,
  updatedAt: now,
});

/**
 * Returns the schedule with other settings. A changed rule applies from `now`; with an unchanged rule the next slot
 * stays the same. Precondition: slots before `now` have been planned.
 */
export function changeSchedule(
  schedule: Schedule,
  settings: ScheduleSettings,
  updatedByUid: string,
  now: Date,
): Schedule {
  const next = { ...schedule, ...settings, updatedByUid, version: schedule.version + 1, updatedAt: now };
  const isSameRule =
    next.cronSchedule === schedule.cronSchedule &&
    next.timeZone === schedule.timeZone &&
    next.enabled === schedule.enabled;
  return { ...next, nextSlotAt: isSameRule ? schedule.nextSlotAt : slotAfter(next, now) };
}

/** Makes the person who resumes a schedule without a creator its creator. */
export const withNewCreator = (schedule: Schedule, by: Creator): Schedule =>
  schedule.creatorLostAccess && schedule.enabled ? { ...schedule, creator: by, creatorLostAccess: false } : schedule;

/** Moves the next slot behind the newest slot of the ledger, so that no slot repeats when the clock was set back. */
export const advancePast = (schedule: Schedule, newest: Date | null): Schedule =>
  schedule.nextSlotAt && newest && schedule.nextSlotAt <= newest
    ? { ...schedule, nextSlotAt: slotAfter(schedule, newest) }
    : schedule;
