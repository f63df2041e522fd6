import { parseCron, isTimeZone, nextSlot } from "@millwright/cron";
import { DomainError, invalidArgument, requireConfigWithin, requireTextWithin } from "@millwright/errors";
import { isUuid, type Uid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";

export type ScheduleUid = Uid<"schedule">;
export type Owner = { readonly type: "team" | "user"; readonly uid: string };
/** Whom the runs of a schedule are made for. */
export type Creator = { readonly type: string; readonly uid: string };

/** What happens at a slot while a run of an earlier slot lives. */
export const OVERLAP_POLICIES = ["allow", "skip", "buffer_one", "cancel_other"] as const;
export type OverlapPolicy = (typeof OVERLAP_POLICIES)[number];

/** What people say about a schedule. Source: fields-runs §9.2; time_zone, overlap_policy and catch_up_seconds are ours. */
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
  /** The creator may not create runs in the team any more; the schedule is paused. Who resumes it becomes its creator. */
  readonly creatorLeft: boolean;
  readonly editorUid: string;
  /** Only the beginning of the prompt was read, as lists do. */
  readonly isPromptTruncated?: true;
  /** The first slot that nothing has become of yet; null while paused. */
  readonly nextSlot: Date | null;
  /** When the last run that succeeded ended. */
  readonly lastRanAt: Date | null;
  readonly lastSpawnError: string | null;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** As asked for: what is absent has its default, or on replacement stays (`agentConfig`). */
export type GivenSettings = Omit<ScheduleSettings, "overlapPolicy" | "mode" | "agentConfig" | "catchUpSeconds"> & {
  readonly agentConfig?: JsonObject;
  readonly mode: string;
  readonly overlapPolicy: string;
  readonly catchUpSeconds?: number;
};

const NAME_MAX = 200;
export const CATCH_UP_DEFAULT_SECONDS = 86_400;
/** A year. */
const CATCH_UP_MAX_SECONDS = 366 * 86_400;
const MODES: readonly string[] = ["normal", "plan", "orchestrate"];
const METADATA_KEYS_MAX = 20;
const METADATA_VALUE_BYTES_MAX = 256;

/**
 * The settings a schedule may have; with `earlier` what they replace.
 *
 * Errors (invalid_argument): name_invalid · cron_invalid · time_zone_unknown · prompt_required · config_conflict · mode_unknown ·
 * overlap_policy_unknown · catch_up_invalid · metadata_invalid · agent_needs_team; agent_not_found (a malformed uid); text_too_large (too_large).
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
  if (settings.name === "" || Array.from(settings.name).length > NAME_MAX)
    throw invalidArgument("name_invalid", `A schedule has a name of 1 to ${NAME_MAX} characters.`);
  parseCron(settings.cronSchedule, "schedule");
  requireTextWithin("The prompt", Buffer.byteLength(settings.prompt));
  if (agentConfig) requireConfigWithin("agent_config", agentConfig);
  if (settings.timeZone !== null && !isTimeZone(settings.timeZone))
    throw invalidArgument("time_zone_unknown", "time_zone is the name of an IANA time zone, such as Europe/Berlin.");
  const { skill_spec: spec, skills } = agentConfig ?? {};
  const hasSkill = Boolean(spec) || (Array.isArray(skills) && skills.length > 0);
  if (settings.prompt.trim() === "" && !hasSkill)
    throw invalidArgument("prompt_required", "A schedule needs a prompt, or a skill in agent_config.");
  if (spec !== undefined && skills !== undefined)
    throw invalidArgument("config_conflict", "agent_config names either skill_spec or skills.");
  if (!MODES.includes(settings.mode))
    throw invalidArgument("mode_unknown", "mode is one of normal, plan, orchestrate.");
  if (!OVERLAP_POLICIES.includes(settings.overlapPolicy))
    throw invalidArgument("overlap_policy_unknown", `overlap_policy is one of ${OVERLAP_POLICIES.join(", ")}.`);
  const { catchUpSeconds } = settings;
  if (!Number.isInteger(catchUpSeconds) || catchUpSeconds < 0 || catchUpSeconds > CATCH_UP_MAX_SECONDS)
    throw invalidArgument("catch_up_invalid", `catch_up_seconds is a number from 0 to ${CATCH_UP_MAX_SECONDS}.`);
  checkMetadata(settings.metadata);
  if (settings.agentUid !== null && owner.type !== "team")
    throw invalidArgument("agent_needs_team", "Only schedules owned by a team can name an agent.");
  if (settings.agentUid !== null && !isUuid(settings.agentUid))
    throw new DomainError({
      kind: "not_found",
      reason: "agent_not_found",
      message: "No such agent, or it is not visible to you.",
    });
  return settings;
}

const isEmpty = (config: JsonObject): boolean => Object.keys(config).length === 0;

/** Source: fields-runs §3.5. */
function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  const entries = Object.entries(metadata);
  const isKept = entries.every(
    ([key, value]) => /^[A-Za-z0-9._-]{1,64}$/.test(key) && Buffer.byteLength(value) <= METADATA_VALUE_BYTES_MAX,
  );
  if (entries.length > METADATA_KEYS_MAX || !isKept) {
    throw invalidArgument(
      "metadata_invalid",
      `metadata has at most ${METADATA_KEYS_MAX} keys of 1 to 64 characters of A-Z a-z 0-9 . _ - with values of at most ${METADATA_VALUE_BYTES_MAX} bytes.`,
    );
  }
}

/** The environment that the runs' requests name. */
export function environmentOf({ agentConfig }: Pick<ScheduleSettings, "agentConfig">): string | undefined {
  const uid = agentConfig?.["environment_id"];
  return typeof uid === "string" && uid !== "" ? uid : undefined;
}

/** The first slot after an instant; null while the schedule is paused. */
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
  creatorLeft: false,
  editorUid: creator.uid,
  nextSlot: slotAfter(settings, now),
  lastRanAt: null,
  lastSpawnError: null,
  version: 1,
  createdAt: now,
  updatedAt: now,
});

/**
 * A schedule with other settings. It comes due by the new rule from now on; an unchanged rule keeps its next slot.
 * The slots that are over by now must have been taken from it before.
 */
export function changeSchedule(schedule: Schedule, settings: ScheduleSettings, editorUid: string, now: Date): Schedule {
  const next = { ...schedule, ...settings, editorUid, version: schedule.version + 1, updatedAt: now };
  const isSameRule =
    next.cronSchedule === schedule.cronSchedule &&
    next.timeZone === schedule.timeZone &&
    next.enabled === schedule.enabled;
  return { ...next, nextSlot: isSameRule ? schedule.nextSlot : slotAfter(next, now) };
}

/** Runs of a schedule that is resumed after its creator left are created for the person who resumes it. */
export const adopted = (schedule: Schedule, by: Creator): Schedule =>
  schedule.creatorLeft && schedule.enabled ? { ...schedule, creator: by, creatorLeft: false } : schedule;

/** With a next slot after the newest one that something has become of, also when the clock was set back. */
export const goOnAfter = (schedule: Schedule, newest: Date | null): Schedule =>
  schedule.nextSlot && newest && schedule.nextSlot <= newest
    ? { ...schedule, nextSlot: slotAfter(schedule, newest) }
    : schedule;
