import { z } from "zod";
import { PROMPT_PREVIEW_CHARACTERS, RUN_TEXT_BYTES_MAX } from "@millwright/errors";
import { Harness, HarnessAuthSecrets } from "./harness-schemas.ts";
import { McpServers } from "./mcp-schemas.ts";
import { EXTENSION, recordOf, Scope, timestamp, UserProfile } from "../../rest/index.ts";

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

const SecretRef = z.object({ name: z.string() }).meta({ id: "SecretRef" });

export const MemoryStoreRef = z.object({
  uid: z.string().min(1),
  access: z.enum(["read_write", "read_only"]),
  instructions: z.string().min(1),
});

export const InferenceProviders = z.object({
  aws: z
    .object({ disabled: z.boolean().optional(), role_arn: z.string().optional(), region: z.string().optional() })
    .optional(),
});

/**
 * Configuration of a run. Unknown members are ignored. So is `experimental`: clients cannot set it, and no response
 * contains it.
 */
export const AgentConfigSnapshot = z
  .object({
    name: z.string(),
    model_id: z.string(),
    base_prompt: z.string(),
    environment_id: z.string(),
    runner_id: z.string(),
    skill_spec: z.string(),
    skills: z.array(z.string()),
    mcp_servers: McpServers,
    computer_use_enabled: z.boolean(),
    computer_use_model_id: z.string(),
    idle_timeout_minutes: z.int().min(0).max(60),
    worker_host: z.string(),
    harness: Harness,
    harness_auth_secrets: HarnessAuthSecrets,
    session_sharing: z.object({ public_access: z.enum(["VIEWER", "EDITOR"]).optional() }).meta({
      description:
        "Access of authenticated users of other teams who have the link to the conversation, while this is its newest run. VIEWER: read the conversation, its commands and screenshots. EDITOR: also send follow-ups to the conversation and interrupt it.",
    }),
    memory_stores: z.array(MemoryStoreRef),
    secrets: z.array(SecretRef),
    inference_providers: InferenceProviders,
    credential_strategy: z.enum(["CREATOR", "EXECUTOR"]).nullable(),
    on_worker_loss: z.enum(["resume", "fail"]).meta({
      description:
        "Whether a run whose worker is lost during execution resumes (`resume`, the default) or ends as `ERROR` (`fail`).",
      ...EXTENSION,
    }),
    step_limit: z
      .int()
      .min(1)
      .max(1_000)
      .meta({
        ...EXTENSION,
        description:
          "Maximum model steps of one execution; default 200. The lowest limit of request, agent and team applies.",
      }),
    token_limit: z
      .int()
      .min(1)
      .max(1e12)
      .meta({ ...EXTENSION, description: "Maximum tokens of all kinds for the run's own model calls." }),
    cost_limit_usd: z
      .number()
      .min(0.000_001)
      .max(1e6)
      .meta({
        ...EXTENSION,
        description:
          "Maximum cost of the model calls of the run and its descendants. Concurrent runs share the remaining amount. Models without a known price are rejected.",
      }),
  })
  .partial()
  .meta({ id: "AgentConfigSnapshot" });

export const ArtifactType = z
  .enum(["PLAN", "PULL_REQUEST", "SCREENSHOT", "FILE", "EXTERNAL_REFERENCE"])
  .meta({ id: "ArtifactType" });

const artifact = <T extends z.infer<typeof ArtifactType>, D extends z.ZodType>(type: T, data: D) =>
  z.object({ artifact_type: z.literal(type), created_at: timestamp(), data });

export const ArtifactItem = z
  .discriminatedUnion("artifact_type", [
    artifact(
      "PLAN",
      z.object({
        document_uid: z.string(),
        artifact_uid: z.uuid().optional(),
        notebook_uid: z.string().optional(),
        title: z.string().optional(),
        url: z.string().optional(),
      }),
    ),
    artifact(
      "PULL_REQUEST",
      z.looseObject({
        url: z.string(),
        branch: z.string(),
        status: z.enum(["open", "draft", "merged", "closed", "unknown"]),
      }),
    ),
    artifact(
      "SCREENSHOT",
      z.object({ artifact_uid: z.uuid(), mime_type: z.string(), description: z.string().optional() }),
    ),
    artifact(
      "FILE",
      z.object({
        artifact_uid: z.uuid(),
        filename: z.string(),
        filepath: z.string(),
        mime_type: z.string(),
        title: z.string().optional(),
        description: z.string().optional(),
        size_bytes: z.int().optional(),
        thumbnail: z.object({ download_url: z.string(), expires_at: timestamp() }).optional(),
      }),
    ),
    artifact(
      "EXTERNAL_REFERENCE",
      z.object({
        reference_type: z.string().max(256),
        url: z.string().max(2048),
        title: z.string().optional(),
        metadata: z.looseObject({}).optional(),
      }),
    ),
  ])
  .meta({ id: "ArtifactItem" });

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

const cost = () => z.number().min(0);
const InferenceUsage = z
  .object({
    token_count: z.object({ input: z.int(), input_cache_read: z.int(), input_cache_write: z.int(), output: z.int() }),
    cost_in_cents: z.object({
      input_cost_in_cents: cost(),
      input_cache_read_cost_in_cents: cost(),
      input_cache_write_cost_in_cents: cost(),
      output_cost_in_cents: cost(),
    }),
    web_search_count: z.int(),
    web_search_cost_in_cents: cost(),
  })
  .meta({ id: "InferenceUsage" });
const byModel = () => z.record(z.string(), InferenceUsage).optional();

/** Usage and cost of a run. Unknown values are omitted, never 0. */
export const RequestUsage = z
  .object({
    inference_cost: z.number().optional(),
    compute_cost: z.number().optional(),
    platform_cost: z.number().optional(),
    inference_cost_usd: z.number().optional(),
    compute_cost_usd: z.number().optional(),
    platform_cost_usd: z.number().optional(),
    total_tokens: z.int().optional(),
    model_token_usage: z
      .array(
        z.object({
          model_id: z.string(),
          total_tokens: z.int(),
          usage_type: z.enum(["warp", "byok", "custom_endpoint"]),
          tokens_by_category: z.record(z.string(), z.int()).optional(),
        }),
      )
      .optional(),
    usage_by_category: z
      .record(
        z.string(),
        z.object({
          platform_usage_in_cents: cost(),
          direct_api_inference_usage: byModel(),
          byok_inference_usage: byModel(),
          custom_endpoint_inference_usage: byModel(),
        }),
      )
      .optional(),
  })
  .meta({ id: "RequestUsage" });

export const RunMetadata = recordOf(z.string(), z.string()).meta({ id: "RunMetadata" });
/** Metadata of a request. The service that owns the run or schedule limits the bytes of each value. */
export const NewMetadata = recordOf(z.string().regex(/^[A-Za-z0-9._-]{1,64}$/), z.string().max(256)).refine(
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

const ATTACHMENT_BYTES_MAX = 10_000_000;
const ATTACHMENTS_MAX = 5;
const decodedBytes = (base64: string): number => (base64.length / 4) * 3 - (/=*$/.exec(base64)?.[0].length ?? 0);

/** An attachment of at most 10 MB after decoding. */
const Attachment = z
  .object({
    file_name: z.string().min(1),
    mime_type: z.string().min(1),
    data: z
      .base64()
      .refine((text) => decodedBytes(text) <= ATTACHMENT_BYTES_MAX, `at most ${ATTACHMENT_BYTES_MAX} bytes`),
  })
  .meta({ id: "AttachmentInput" });

/** The body that creates a run. `agent_name` is a Millwright extension: a child run names an agent of its factory. */
export const CreateRunRequest = z
  .object({
    prompt: z.string().optional().meta({ description: PROMPT_LIMIT }),
    title: z.string().max(500).optional(),
    config: AgentConfigSnapshot.optional(),
    skill: z.string().optional(),
    mode: RunMode.optional(),
    team: z.boolean().optional(),
    agent_identity_uid: z
      .string()
      .min(1)
      .optional()
      .meta({ description: "The agent that executes the run. Default with an agent's API key: that agent." }),
    on_behalf_of: z.string().min(1).optional().meta({
      description:
        "E-mail address or uid of a team member who becomes the run's creator. Requires the API key of an agent with `on_behalf_of_enabled`; otherwise 403.",
    }),
    agent_name: z
      .string()
      .min(1)
      .optional()
      .meta({
        ...EXTENSION,
        description:
          "Name of an agent of the parent run's factory. Default: a child run is executed by its parent's agent.",
      }),
    conversation_id: z.string().min(1).optional(),
    parent_run_id: z.string().min(1).optional(),
    interactive: z.boolean().optional(),
    attachments: z.array(Attachment).max(ATTACHMENTS_MAX).optional(),
    images: z
      .array(Attachment.partial({ file_name: true }).meta({ id: "ImageInput" }))
      .max(ATTACHMENTS_MAX)
      .optional()
      .meta({ description: "Like attachments, but file names are optional." }),
    metadata: NewMetadata.optional(),
  })
  .refine(
    ({ attachments = [], images = [] }) => attachments.length + images.length <= ATTACHMENTS_MAX,
    `attachments and images: at most ${ATTACHMENTS_MAX} together`,
  )
  .meta({ id: "RunAgentRequest" });

export const CreatedRun = z
  .object({ run_id: z.string(), task_id: z.string(), state: RunState, at_capacity: z.boolean().optional() })
  .meta({ id: "RunAgentResponse" });
