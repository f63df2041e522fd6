import { z } from "zod";
import type { factories } from "@millwright/contracts";
import { EXTENSION, timestamp } from "../../rest/index.ts";
import { omitUndefined } from "@millwright/json";
import { isoTime } from "../formats/json-values.ts";

const CodeForge = z.enum(["GITHUB", "GITLAB", "AZURE_DEVOPS", "NONE"]);
export const Repository = z
  .object({ owner: z.string(), repo: z.string(), code_forge: CodeForge.exclude(["NONE"]).optional() })
  .meta({ id: "Repository" });

const SelfImprovement = z.object({
  reviewer_type: z.enum(["none", "admins", "team", "custom"]),
  failed_run_threshold: z.int().optional(),
  reviewer_emails: z.array(z.string()).optional(),
});

export const Factory = z
  .object({
    uid: z.string(),
    name: z.string(),
    alias: z.string().nullable(),
    description: z.string().nullable(),
    team_uid: z.string(),
    avatar_url: z.string().nullable(),
    code_forge: CodeForge,
    code_forges: z.array(CodeForge),
    repositories: z.array(Repository),
    credential_strategy: z.enum(["EXECUTOR", "CREATOR"]),
    default_environment: z.string().nullable(),
    default_model: z.string().nullable(),
    agent_defaults: z.looseObject({
      default_runner_uid: z.string(),
      mcp_servers: z.looseObject({}),
      secrets: z.array(z.object({ name: z.string() })),
      worker_host: z.string(),
    }),
    scorer_defaults: z.looseObject({}),
    scoring: z.object({ default_model: z.string().nullable() }),
    integrations: z.array(z.looseObject({ type: z.string() })).nullable(),
    self_improvement: SelfImprovement.optional(),
    creator: z.object({ uid: z.string(), email: z.string().nullable().optional() }).optional(),
    created_at: timestamp(),
    updated_at: timestamp(),
    foreman_agent_uid: z.string().nullable(),
    management: z.enum(["live", "service_files", "external_files"]),
    permissions: z.array(z.string()),
    definition_version: z.int(),
    concurrency_limit: z
      .int()
      .meta({ ...EXTENSION, description: "Maximum concurrent executions; 0 = the platform's default." }),
    queue_paused: z.boolean().meta({ ...EXTENSION, description: "True: its runs stay queued. Active runs continue." }),
  })
  .meta({ id: "Factory" });

type FactoryJson = z.input<typeof Factory>;

/** Returns the public record of a factory. `permissions` are those of the caller. */
export function factoryRecord(
  factory: factories.Factory,
  seen: { permissions: readonly string[]; creatorEmail: string | undefined },
): FactoryJson {
  return {
    uid: factory.uid,
    name: factory.name,
    alias: factory.alias ?? null,
    description: factory.description ?? null,
    team_uid: factory.teamUid,
    avatar_url: null,
    code_forge: factory.codeForge as FactoryJson["code_forge"],
    code_forges: factory.codeForges as FactoryJson["code_forges"],
    repositories: factory.repositories.map((repository) => ({
      owner: repository.owner,
      repo: repository.repo,
      code_forge: (repository.codeForge || undefined) as "GITHUB" | undefined,
    })),
    credential_strategy: factory.credentialStrategy as "EXECUTOR",
    default_environment: factory.defaultEnvironment ?? null,
    default_model: factory.defaultModel ?? null,
    agent_defaults: (factory.agentDefaults ?? {}) as FactoryJson["agent_defaults"],
    scorer_defaults: factory.scorerDefaults ?? {},
    scoring: { default_model: factory.scoringDefaultModel ?? null },
    integrations: factory.integrations ? (factory.integrations.items as { type: string }[]) : null,
    created_at: isoTime(factory.createdAt!),
    updated_at: isoTime(factory.updatedAt!),
    foreman_agent_uid: factory.foremanAgentUid ?? null,
    management: factory.management as FactoryJson["management"],
    permissions: [...seen.permissions],
    definition_version: Number(factory.definitionVersion),
    concurrency_limit: factory.concurrencyLimit,
    queue_paused: factory.queuePaused,
    ...omitUndefined({
      self_improvement: factory.selfImprovement as FactoryJson["self_improvement"],
      creator: factory.creatorUid ? { uid: factory.creatorUid, email: seen.creatorEmail ?? null } : undefined,
    }),
  };
}
