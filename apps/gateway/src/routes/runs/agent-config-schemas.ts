import { z } from "zod";
import { EXTENSION } from "../../rest/index.ts";
import { Harness, HarnessAuthSecrets } from "./harness-schemas.ts";
import { McpServers } from "./mcp-schemas.ts";

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
