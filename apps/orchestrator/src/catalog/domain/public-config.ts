import { omitUndefined } from "@millwright/json";
import { toDollars } from "@millwright/money";
import type { Harness, JsonObject } from "./agent-config.ts";
import type { ResolvedConfig } from "./config-resolution.ts";
import { shownMcpServers } from "./mcp-servers.ts";

/** The results of resolving names in the configuration. */
export type ResolvedNames = {
  readonly name?: string;
  readonly modelId?: string;
  readonly runnerUid?: string;
  readonly skills: readonly string[];
};

/**
 * Returns the resolved configuration as shown by the public API (AgentConfigSnapshot). It contains only the names of
 * secrets; secrets that are literal values are masked.
 */
export const publicConfig = (config: ResolvedConfig, names: ResolvedNames): JsonObject =>
  omitUndefined({
    name: names.name,
    model_id: names.modelId,
    base_prompt: config.basePrompt,
    environment_id: config.environmentId,
    runner_id: names.runnerUid,
    skill_spec: names.skills[0],
    skills: names.skills.length > 0 ? [...names.skills] : undefined,
    mcp_servers: Object.keys(config.mcpServers).length > 0 ? shownMcpServers(config.mcpServers) : undefined,
    computer_use_enabled: config.computerUseEnabled,
    computer_use_model_id: config.computerUseModelId,
    idle_timeout_minutes: config.idleTimeoutMinutes,
    worker_host: config.workerHost,
    harness: publicHarness(config.harness),
    harness_auth_secrets: config.harnessAuthSecrets,
    session_sharing: config.sessionSharing,
    memory_stores: config.memoryStores,
    secrets: config.secrets.length > 0 ? config.secrets.map((name) => ({ name })) : undefined,
    inference_providers: config.inferenceProviders,
    credential_strategy: config.credentialStrategy,
    on_worker_loss: config.onWorkerLoss,
    step_limit: config.stepLimit,
    token_limit: config.tokenLimit,
    cost_limit_usd: config.costLimitMicros === undefined ? undefined : toDollars(BigInt(config.costLimitMicros)),
  });

const publicHarness = (harness: Harness): JsonObject =>
  omitUndefined({ type: harness.type, model_id: harness.modelId, reasoning_level: harness.reasoningLevel });

/**
 * Returns the managed secret that authenticates the run's harness, if one is named. Secrets of other harnesses are not
 * injected.
 */
export function harnessSecret(config: ResolvedConfig): string | undefined {
  const name = config.harnessAuthSecrets?.[`${config.harness.type}_auth_secret_name`];
  return typeof name === "string" && name !== "" ? name : undefined;
}
