import { z } from "zod";
import { runnerUidOf } from "@millwright/ids";
import { AGENT_TYPES, type Agent, type AgentFields } from "../../identity/index.ts";
import { EXTENSION, timestamp } from "../../rest/index.ts";
import { Harness, HARNESS_TYPES, HarnessAuthSecrets } from "../runs/harness-schemas.ts";
import { McpServer, McpServers } from "../runs/mcp-schemas.ts";
import { InferenceProviders, MemoryStoreRef } from "../runs/agent-config-schemas.ts";

const SecretRef = z.object({ name: z.string().min(1) });
const SKILL_SPEC = /^[\w.-]+\/[\w.-]+:.+$/;

const text = (max: number) => z.string().max(max).nullish();
const emptyOr = (form: RegExp) => z.string().trim().regex(form).or(z.literal("")).nullish();

const settings = {
  name: text(200),
  agent_type: z.enum(AGENT_TYPES).nullish(),
  description: text(10_000),
  prompt: text(200_000),
  environment_id: emptyOr(/^[A-Za-z0-9]{22}$/),
  default_runner_uid: text(200),
  base_model: text(200),
  harness: Harness.nullish(),
  base_harness: z
    .enum([...HARNESS_TYPES, ""])
    .nullish()
    .meta({ deprecated: true }),
  harness_auth_secrets: HarnessAuthSecrets.nullish(),
  inference_providers: InferenceProviders.nullish(),
  mcp_servers: McpServers.nullish(),
  skills: z.array(z.string().trim().regex(SKILL_SPEC, "expected owner/repo:path/to/SKILL.md")).max(100).nullish(),
  secrets: z.array(SecretRef).max(100).nullish(),
  memory: z
    .object({
      auto_memory: z.object({ enabled: z.boolean().optional() }).optional(),
      attached_stores: z.array(MemoryStoreRef).max(100).optional(),
    })
    .nullish(),
  credential_strategy: z.enum(["CREATOR", "EXECUTOR", ""]).nullish(),
  on_behalf_of_enabled: z.boolean().nullish(),
  on_worker_loss: z
    .enum(["resume", "fail", ""])
    .nullish()
    .meta({ ...EXTENSION, description: "See AgentConfigSnapshot." }),
  step_limit: z
    .int()
    .min(0)
    .max(1_000)
    .nullish()
    .meta({
      ...EXTENSION,
      description:
        "See AgentConfigSnapshot. 0 = no limit at this level (also for token_limit and cost_limit_usd). Can be changed on file-managed agents.",
    }),
  token_limit: z.int().min(0).max(1e12).nullish(),
  cost_limit_usd: z.number().min(0).max(1e6).nullish(),
  worker_host: text(200),
  concurrency_limit: z.int().min(0).max(100_000).nullish(),
  queue_priority: z.int().min(-100).max(100).nullish(),
  queue_paused: z.boolean().nullish(),
};

export const NewAgent = z
  .object({ ...settings, name: z.string().trim().min(1).max(200), factory_uid: z.string().nullish() })
  .meta({ id: "NewAgentIdentity" });

export const AgentUpdate = z
  .looseObject({
    ...settings,
    secrets_append: z
      .array(SecretRef)
      .min(1)
      .max(100)
      .optional()
      .meta({ description: "Adds secrets and changes nothing else; must be the only member." }),
  })
  .superRefine((sent, context) => {
    // Counts null and unknown members too, so that no member beside `secrets_append` is silently ignored.
    if (!("secrets_append" in sent) || Object.keys(sent).length === 1) return;
    context.addIssue({ code: "custom", path: ["secrets_append"], message: "must be the only member" });
  })
  .meta({ id: "AgentIdentityUpdate", description: "A partial update: omitted or null = unchanged, empty = cleared." });

export const AgentRecord = z
  .object({
    uid: z.string(),
    name: z.string(),
    available: z.boolean(),
    created_at: timestamp(),
    updated_at: timestamp(),
    agent_type: z.enum(AGENT_TYPES).nullish(),
    description: z.string().nullish(),
    prompt: z.string().nullish(),
    factory_uid: z.string().nullish(),
    environment_id: z.string().optional(),
    default_runner_uid: z.string().meta({
      description:
        "Uid of a runner, as in `runner_id` of a run's configuration and in the factory's agent_defaults. Empty: none.",
    }),
    base_model: z.string().optional(),
    harness: Harness.optional(),
    base_harness: z.enum(HARNESS_TYPES).optional().meta({ deprecated: true }),
    harness_auth_secrets: z.record(z.string(), z.unknown()).optional(),
    inference_providers: InferenceProviders.optional(),
    mcp_servers: z.record(z.string(), McpServer).optional(),
    skills: z.array(z.string()),
    secrets: z.array(SecretRef),
    memory: z.object({ auto_memory: z.object({ enabled: z.boolean() }), attached_stores: z.array(MemoryStoreRef) }),
    credential_strategy: z.enum(["CREATOR", "EXECUTOR"]).optional(),
    on_behalf_of_enabled: z.boolean().optional(),
    on_worker_loss: z.enum(["resume", "fail"]).optional(),
    step_limit: z.int().optional(),
    token_limit: z.int().optional(),
    cost_limit_usd: z.number().optional(),
    worker_host: z.string().optional(),
    concurrency_limit: z.int().meta({
      ...EXTENSION,
      description:
        "Maximum concurrent executions; 0 = the platform's default. Not part of definition files, so it can be changed on file-managed agents, as can queue_priority and queue_paused.",
    }),
    queue_priority: z.int().meta({
      ...EXTENSION,
      description: "Among the team's queued runs of the same depth, each level counts as five minutes of waiting time.",
    }),
    queue_paused: z.boolean().meta({ ...EXTENSION, description: "True: its runs stay queued. Active runs continue." }),
  })
  .meta({ id: "AgentIdentity" });

/** Returns the members of a body that are fields of the agent. */
export const agentFields = (body: Readonly<Record<string, unknown>>): AgentFields =>
  Object.fromEntries(Object.keys(settings).flatMap((key) => (body[key] === undefined ? [] : [[key, body[key]]])));

export function agentRecord(agent: Agent): z.input<typeof AgentRecord> {
  const { runner, memory, default_runner_uid, skills, secrets, ...config } = agent.config;
  return {
    ...(config as Partial<z.input<typeof AgentRecord>>),
    uid: agent.uid,
    name: agent.name,
    available: agent.enabled,
    created_at: agent.createdAt.toISOString(),
    updated_at: agent.updatedAt.toISOString(),
    agent_type: agent.agentType,
    description: agent.description,
    prompt: agent.prompt,
    factory_uid: agent.factoryUid,
    default_runner_uid: default_runner_uid ?? (runner && agent.factoryUid ? runnerUidOf(agent.factoryUid, runner) : ""),
    base_harness: (config.harness?.type || undefined) as (typeof HARNESS_TYPES)[number] | undefined,
    skills: skills ?? [],
    secrets: secrets ?? [],
    concurrency_limit: agent.concurrencyLimit,
    queue_priority: agent.queuePriority,
    queue_paused: agent.queuePaused,
    memory: {
      auto_memory: { enabled: memory?.auto_memory?.enabled ?? true },
      attached_stores: (memory?.attached_stores ?? []) as z.input<typeof MemoryStoreRef>[],
    },
  };
}
