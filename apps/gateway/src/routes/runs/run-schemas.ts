import { z } from "zod";
import { PROMPT_PREVIEW_CHARACTERS, RUN_TEXT_BYTES_MAX } from "@millwright/errors";
import { EXTENSION, recordOf, Scope, timestamp, UserProfile } from "../../rest/index.ts";
import { AgentConfigSnapshot } from "./agent-config-schemas.ts";
import { ArtifactItem } from "./artifact-schemas.ts";
import { RequestUsage } from "./usage-schemas.ts";

export const RUN_STATES = [
  "QUEUED",
  "PENDING",
  "CLAIMED",
  "INPROGRESS",
  "SUCCEEDED",
  "FAILED",
  "BLOCKED",
  "ERROR",
  "CANCELLED",
] as const;
export const RunState = z.enum(RUN_STATES).meta({ id: "RunState" });
export const RunSourceType = z
  .enum([
    "LINEAR",
    "API",
    "SLACK",
    "TEAMS",
    "LOCAL",
    "SCHEDULED_AGENT",
    "WEB_APP",
    "GITHUB_ACTION",
    "CLOUD_MODE",
    "CLI",
    "JIRA",
    "SELF_IMPROVEMENT",
    "GITHUB_WEBHOOK",
    "GITLAB_WEBHOOK",
    "AZURE_DEVOPS_WEBHOOK",
    "AUTOFIX",
    "RUN_SCORER",
    "ORCHESTRATION",
    "BENCHMARK_TRIAL",
    "CREATE_BENCHMARK_TASK",
    "CUSTOM_WEBHOOK",
  ])
  .meta({ id: "RunSourceType" });
/** Body size that accommodates the longest text of a run in any JSON escaping. */
export const TEXT_BODY_BYTES_MAX = 8 * RUN_TEXT_BYTES_MAX;
export const PROMPT_LIMIT = `At most ${RUN_TEXT_BYTES_MAX} bytes of text, otherwise 413 \`text_too_large\`. Send larger input as attachments.`;

export const RunMode = z.enum(["normal", "plan", "orchestrate"]).meta({ id: "AgentRunMode" });

const StatusMessage = z
  .object({
    message: z.string().meta({
      description: "Truncated to 8,192 characters. The run's conversation contains the full text.",
    }),
    error_code: z.string().optional(),
    retryable: z.boolean().optional(),
    session_debug_until: timestamp().optional(),
    debug_agent_active: z.boolean().optional(),
  })
  .meta({ id: "RunStatusMessage" });

export const RunMetadata = recordOf(z.string(), z.string()).meta({ id: "RunMetadata" });
const MetadataValue = z
  .string()
  .max(256)
  .refine((value) => Buffer.byteLength(value) <= 256, "at most 256 bytes");

/** Metadata of a request. */
export const NewMetadata = recordOf(z.string().regex(/^[A-Za-z0-9._-]{1,64}$/), MetadataValue).refine(
  (map) => Object.keys(map).length <= 20,
  "at most 20 keys",
);

export const RunItem = z
  .object({
    run_id: z.string(),
    task_id: z.string().meta({ description: "Deprecated: equals run_id." }),
    root_run_id: z.string(),
    parent_run_id: z.string().optional(),
    retry_of_run_id: z
      .string()
      .optional()
      .meta({ ...EXTENSION, description: "The run that this run retries." }),
    title: z.string(),
    state: RunState,
    status_message: StatusMessage.optional(),
    prompt: z.string(),
    submitted_prompt: z.string().optional(),
    prompt_truncated: z
      .boolean()
      .optional()
      .meta({
        ...EXTENSION,
        description: `True in lists if the row contains only the first ${PROMPT_PREVIEW_CHARACTERS} characters of the prompts. Read the run for the full text.`,
      }),
    created_at: timestamp(),
    updated_at: timestamp(),
    started_at: timestamp().nullable().optional(),
    finished_at: timestamp().nullable(),
    run_time: z.string().optional(),
    source: RunSourceType.optional(),
    execution_location: z.enum(["LOCAL", "REMOTE"]).optional(),
    creator: UserProfile.optional(),
    executor: UserProfile.optional(),
    scope: Scope.optional(),
    agent_config: AgentConfigSnapshot.optional(),
    agent_skill: z
      .object({
        name: z.string().optional(),
        description: z.string().optional(),
        full_path: z.string().optional(),
        bundled_skill_id: z.string().optional(),
      })
      .optional(),
    factory_uid: z.string().optional(),
    schedule: z.object({ schedule_id: z.string(), schedule_name: z.string(), cron_schedule: z.string() }).optional(),
    metadata: RunMetadata.optional(),
    conversation_id: z.string().optional(),
    session_id: z.string().optional(),
    session_link: z.url().optional(),
    trigger_url: z.string().optional(),
    is_sandbox_running: z.boolean().optional(),
    is_run_type_cancellable: z.boolean().optional(),
    debug_agent_available: z.boolean().optional(),
    artifacts: z.array(ArtifactItem).optional(),
    request_usage: RequestUsage.optional(),
  })
  .meta({ id: "RunItem" });
