import { invalidArgument, type DomainError } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import { checkMcpServers } from "./mcp-servers.ts";

/** What happens to an execution whose worker is lost while its agent is working. */
export const LOSS_POLICIES = ["resume", "fail"] as const;
export type LossPolicy = (typeof LOSS_POLICIES)[number];

export type JsonObject = { readonly [key: string]: unknown };

/** The harnesses that a run can name. `oz` is the built-in harness; `opencode` is an extension of the published API. */
export const HARNESS_TYPES = ["oz", "claude", "gemini", "codex", "opencode"] as const;
export type HarnessType = (typeof HARNESS_TYPES)[number];

/** The harness of a run. `modelId` and `reasoningLevel` apply to third-party harnesses only. */
export type Harness = { readonly type: HarnessType; readonly modelId?: string; readonly reasoningLevel?: string };

export const CREDENTIAL_STRATEGIES = ["CREATOR", "EXECUTOR"] as const;
export type CredentialStrategy = (typeof CREDENTIAL_STRATEGIES)[number];

/** A repository, as owner and name on a code host. */
export type RepositoryRef = { readonly owner: string; readonly repo: string };

/** A reference to a runner: by uid in requests and identities, by name in the files of a factory's definition. */
export type RunnerRef = { readonly uid: string } | { readonly name: string };

/**
 * The configuration of a run at one level; an absent key is not set at that level. The keys are those of
 * AgentConfigSnapshot, plus keys that only agents (`prompt`) and factories (`granted…`, `repositories`) set.
 */
export type LayerConfig = {
  readonly name?: string;
  readonly modelId?: string;
  readonly harness?: Harness;
  readonly basePrompt?: string;
  readonly environmentId?: string;
  readonly runner?: RunnerRef;
  readonly skills?: readonly string[];
  readonly mcpServers?: JsonObject;
  readonly computerUseEnabled?: boolean;
  readonly computerUseModelId?: string;
  readonly idleTimeoutMinutes?: number;
  readonly workerHost?: string;
  readonly harnessAuthSecrets?: JsonObject;
  readonly sessionSharing?: JsonObject;
  readonly memoryStores?: readonly unknown[];
  readonly secrets?: readonly string[];
  readonly inferenceProviders?: JsonObject;
  readonly credentialStrategy?: CredentialStrategy;
  /** Extension of AgentConfigSnapshot. */
  readonly onWorkerLoss?: LossPolicy;
  /**
   * Extensions of AgentConfigSnapshot that limit spending: steps of one execution; tokens of all model calls of the run
   * itself; cost in micro-dollars of the run and all its descendants.
   */
  readonly stepLimit?: number;
  readonly tokenLimit?: number;
  readonly costLimitMicros?: number;
  /** The agent's own prompt. */
  readonly prompt?: string;
  /** Factory level: added to the secrets and MCP servers of every other level. */
  readonly grantedSecrets?: readonly string[];
  readonly grantedMcpServers?: JsonObject;
  /** Factory level: the repositories that runs of the factory's agents work on. */
  readonly repositories?: readonly RepositoryRef[];
};

/** The bounds of `idle_timeout_minutes`. */
export const IDLE_TIMEOUT_MINUTES = { min: 0, max: 60, default: 10 } as const;

/** The greatest values of the run limits. */
export const RUN_LIMITS_MAX = { steps: 1_000, tokens: 1_000_000_000_000, dollars: 1_000_000 } as const;

/**
 * Returns a level read from its JSON form. Unknown keys and null values are ignored. The spellings of definition files
 * (`model`, `runner`, secrets as plain names) are accepted too, because levels are projected from those files.
 *
 * Errors: config_invalid naming the key · config_conflict (`skill_spec` with `skills`).
 */
export function readLayerConfig(json: JsonObject): LayerConfig {
  const read = new Reader(json);
  const skillSpec = read.text("skill_spec");
  const skills = read.texts("skills");
  if (skillSpec !== undefined && skills !== undefined) throw conflict("skill_spec", "skills");
  const runnerUid = read.text("runner_id") || undefined;
  const runnerName = read.text("runner") || undefined;
  const runner = runnerUid ? { uid: runnerUid } : runnerName ? { name: runnerName } : undefined;
  return omitUndefined({
    name: read.text("name"),
    modelId: (read.text("model_id") ?? read.text("model")) || undefined,
    harness: read.harness(),
    basePrompt: read.text("base_prompt"),
    environmentId: read.text("environment_id") || undefined,
    runner,
    skills: skills ?? (skillSpec ? [skillSpec] : undefined),
    mcpServers: read.mcpServers("mcp_servers"),
    computerUseEnabled: read.flag("computer_use_enabled"),
    computerUseModelId: read.text("computer_use_model_id"),
    idleTimeoutMinutes: read.whole("idle_timeout_minutes", IDLE_TIMEOUT_MINUTES.min, IDLE_TIMEOUT_MINUTES.max),
    workerHost: read.text("worker_host") || undefined,
    harnessAuthSecrets: read.object("harness_auth_secrets"),
    sessionSharing: read.object("session_sharing"),
    memoryStores: read.list("memory_stores"),
    secrets: read.secretNames("secrets"),
    inferenceProviders: read.object("inference_providers"),
    credentialStrategy: read.oneOf("credential_strategy", CREDENTIAL_STRATEGIES),
    onWorkerLoss: read.oneOf("on_worker_loss", LOSS_POLICIES),
    stepLimit: read.whole("step_limit", 1, RUN_LIMITS_MAX.steps),
    tokenLimit: read.whole("token_limit", 1, RUN_LIMITS_MAX.tokens),
    costLimitMicros: read.dollars("cost_limit_usd", RUN_LIMITS_MAX.dollars),
    prompt: read.text("prompt"),
    grantedSecrets: read.secretNames("factory_secrets"),
    grantedMcpServers: read.mcpServers("factory_mcp_servers"),
    repositories: read.repositories("repositories"),
  });
}

class Reader {
  readonly #json: JsonObject;

  constructor(json: JsonObject) {
    this.#json = json;
  }

  text(key: string): string | undefined {
    const value = this.#json[key] ?? undefined;
    if (value === undefined || typeof value === "string") return value;
    throw invalid(key, "must be a string");
  }

  flag(key: string): boolean | undefined {
    const value = this.#json[key] ?? undefined;
    if (value === undefined || typeof value === "boolean") return value;
    throw invalid(key, "must be true or false");
  }

  whole(key: string, min: number, max: number): number | undefined {
    const value = this.#json[key] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= min && value <= max) return value;
    throw invalid(key, `must be a whole number from ${min} to ${max}`);
  }

  /** Returns whole micro-dollars. */
  dollars(key: string, max: number): number | undefined {
    const value = this.#json[key] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value === "number" && value >= 0.000_001 && value <= max) return Math.round(value * 1_000_000);
    throw invalid(key, `must be a number of dollars above 0, at most ${max}`);
  }

  list(key: string): readonly unknown[] | undefined {
    const value = this.#json[key] ?? undefined;
    if (value === undefined || Array.isArray(value)) return value;
    throw invalid(key, "must be a list");
  }

  texts(key: string): readonly string[] | undefined {
    const list = this.list(key);
    if (list === undefined || list.every((entry) => typeof entry === "string")) return list;
    throw invalid(key, "must be a list of strings");
  }

  object(key: string): JsonObject | undefined {
    const value = this.#json[key] ?? undefined;
    if (value === undefined || isObject(value)) return value;
    throw invalid(key, "must be an object");
  }

  mcpServers(key: string): JsonObject | undefined {
    const servers = this.object(key);
    return servers && checkMcpServers(servers, key);
  }

  oneOf<T extends string>(key: string, allowed: readonly T[]): T | undefined {
    const value = this.text(key) || undefined;
    if (value === undefined || allowed.includes(value as T)) return value as T | undefined;
    throw invalid(key, `must be one of ${allowed.join(", ")}`);
  }

  secretNames(key: string): readonly string[] | undefined {
    return this.list(key)?.map((entry) => {
      const name = isObject(entry) ? entry["name"] : entry;
      if (typeof name === "string" && name !== "") return name;
      throw invalid(key, "must be a list of {name}");
    });
  }

  repositories(key: string): readonly RepositoryRef[] | undefined {
    return this.list(key)?.map((entry) => {
      const owner = isObject(entry) ? entry["owner"] : undefined;
      const repo = isObject(entry) ? (entry["repo"] ?? entry["name"]) : undefined;
      if (typeof owner === "string" && owner !== "" && typeof repo === "string" && repo !== "") return { owner, repo };
      throw invalid(key, "must be a list of {owner, repo}");
    });
  }

  /** Returns undefined for `{}`, as for an absent harness. An absent type is `oz`. */
  harness(): Harness | undefined {
    const json = this.object("harness");
    if (json === undefined || Object.keys(json).length === 0) return undefined;
    const read = new Reader(json);
    const type = read.oneOf("type", HARNESS_TYPES) ?? "oz";
    const modelId = (read.text("model_id") ?? read.text("model")) || undefined;
    return omitUndefined({ type, modelId, reasoningLevel: read.text("reasoning_level") || undefined });
  }
}

/** Returns whether a JSON value is an object (neither an array nor null). */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const invalid = (key: string, text: string): DomainError =>
  invalidArgument("config_invalid", `config.${key} ${text}.`, { key });

const conflict = (a: string, b: string): DomainError =>
  invalidArgument("config_conflict", `config.${a} and config.${b} must not both be set. Remove one of them.`, {
    key: a,
    other: b,
  });
