import { z } from "zod";
import { EXTENSION, Scope, timestamp, UserProfile } from "../../rest/index.ts";
import { EnvironmentConfig } from "../catalog/environment-schemas.ts";
import { AgentConfigSnapshot } from "../runs/agent-config-schemas.ts";
import { NewMetadata, PROMPT_LIMIT, RunMetadata, RunMode } from "../runs/run-schemas.ts";

const OverlapPolicy = z.enum(["allow", "skip", "buffer_one", "cancel_other"]).meta({
  id: "OverlapPolicy",
  ...EXTENSION,
  description: "What happens at a slot while a run of an earlier slot is active.",
});

const TIME_ZONE = "IANA time zone of cron_schedule. Absent: UTC.";
const CATCH_UP =
  "How late a slot may still fire, in seconds; default 86400. A delay of up to ten seconds is always allowed.";

/** A schedule. `time_zone`, `overlap_policy` and `catch_up_seconds` are Millwright extensions. */
export const ScheduledAgent = z
  .object({
    id: z.string(),
    name: z.string(),
    cron_schedule: z.string(),
    time_zone: z
      .string()
      .nullable()
      .meta({ ...EXTENSION, description: TIME_ZONE }),
    enabled: z.boolean(),
    prompt: z.string(),
    prompt_truncated: z
      .boolean()
      .optional()
      .meta({
        ...EXTENSION,
        description:
          "True in lists if the prompt is truncated. Read the schedule for the full prompt before replacing it.",
      }),
    created_at: timestamp(),
    updated_at: timestamp(),
    agent_config: AgentConfigSnapshot.optional(),
    agent_uid: z.string().optional(),
    mode: RunMode.optional(),
    metadata: RunMetadata.optional(),
    environment: EnvironmentConfig.optional(),
    overlap_policy: OverlapPolicy,
    catch_up_seconds: z.int().meta({ ...EXTENSION, description: CATCH_UP }),
    history: z.object({ last_ran: timestamp().nullable(), next_run: timestamp().nullable() }).optional(),
    last_spawn_error: z.string().nullable().optional(),
    created_by: UserProfile.optional(),
    updated_by: UserProfile.optional(),
    scope: Scope.optional(),
  })
  .meta({ id: "ScheduledAgent" });

const settings = {
  name: z.string().min(1).max(200),
  cron_schedule: z.string().min(1).max(200).meta({
    description:
      "Minute, hour, day of month, month, day of week; names of months and days are accepted, macros are not.",
  }),
  agent_config: AgentConfigSnapshot.optional(),
  agent_uid: z.string().optional(),
  mode: RunMode.optional(),
  metadata: NewMetadata.optional(),
  time_zone: z
    .string()
    .min(1)
    .max(64)
    .nullable()
    .optional()
    .meta({ ...EXTENSION, description: TIME_ZONE }),
  overlap_policy: OverlapPolicy.optional(),
  catch_up_seconds: z
    .int()
    .min(0)
    .max(31_622_400)
    .optional()
    .meta({ ...EXTENSION, description: CATCH_UP }),
};

export const CreateSchedule = z
  .object({
    ...settings,
    enabled: z.boolean().default(true),
    prompt: z.string().optional().meta({ description: PROMPT_LIMIT }),
    team: z.boolean().optional(),
  })
  .meta({ id: "CreateScheduledAgentRequest" });

export const ReplaceSchedule = z
  .object({ ...settings, enabled: z.boolean(), prompt: z.string().meta({ description: PROMPT_LIMIT }) })
  .meta({ id: "UpdateScheduledAgentRequest" });

export const SLOT_STATES = ["due", "buffered", "fired", "skipped", "missed"] as const;

export const ScheduleSlot = z
  .object({
    slot_at: timestamp(),
    state: z.enum(SLOT_STATES),
    reason: z.string().optional().meta({
      description:
        "Only for skipped and missed slots: overlap, paused, deleted, spawn_failed, catch_up_window or superseded.",
    }),
    message: z.string().optional(),
    run_id: z.string().optional(),
    decided_at: timestamp().nullable(),
  })
  .meta({ id: "ScheduleSlot" });
