import { DomainError, invalidArgument } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";

export const AGENT_TYPES = ["FOREMAN", "TRIAGE", "SPEC", "IMPLEMENT", "REVIEW", "VERIFY", "CUSTOM"] as const;
export type AgentType = (typeof AGENT_TYPES)[number];

export type Harness = {
  type?: string | undefined;
  model_id?: string | undefined;
  reasoning_level?: string | undefined;
};

type Memory = {
  auto_memory?: { enabled?: boolean | undefined } | undefined;
  attached_stores?: { uid: string }[] | undefined;
};

/**
 * Published fields of an agent that have no rules of their own in this service; an absent field is not set. Names are
 * snake_case, as in the public API.
 */
export type AgentConfig = {
  environment_id?: string;
  default_runner_uid?: string;
  /** Name of a runner in the factory's definition, instead of its uid. Only for file-managed agents. */
  runner?: string;
  base_model?: string;
  harness?: Harness;
  harness_auth_secrets?: Record<string, unknown>;
  inference_providers?: Record<string, unknown>;
  mcp_servers?: Record<string, unknown>;
  skills?: string[];
  secrets?: { name: string }[];
  memory?: Memory;
  credential_strategy?: string;
  on_behalf_of_enabled?: boolean;
  on_worker_loss?: string;
  step_limit?: number;
  token_limit?: number;
  cost_limit_usd?: number;
  worker_host?: string;
};

/** An agent identity: a service account that belongs to one team. */
export type Agent = {
  uid: string;
  teamUid: string;
  factoryUid: string | null;
  name: string;
  agentType: AgentType;
  description: string;
  prompt: string;
  config: AgentConfig;
  enabled: boolean;
  /** Whether the agent is projected from a definition file, which is the source of truth. */
  fileManaged: boolean;
  /** Maximum number of concurrent executions; 0 = the platform's default. */
  concurrencyLimit: number;
  /** Priority of the agent's runs among those of its team. */
  queuePriority: number;
  /** While true, no run of the agent is started. */
  queuePaused: boolean;
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/**
 * Fields sent by a client. undefined and null leave a field unchanged, an empty value clears it (PUT is a partial
 * update).
 */
export type AgentFields = { [K in keyof Omit<AgentConfig, "runner">]?: AgentConfig[K] | null | undefined } & {
  name?: string | null | undefined;
  agent_type?: AgentType | null | undefined;
  description?: string | null | undefined;
  prompt?: string | null | undefined;
  /** Deprecated spelling of `harness.type`. */
  base_harness?: string | null | undefined;
  concurrency_limit?: number | null | undefined;
  queue_priority?: number | null | undefined;
  queue_paused?: boolean | null | undefined;
};

/** The parts of an agent that clients can change. */
export type AgentParts = Pick<
  Agent,
  "name" | "agentType" | "description" | "prompt" | "config" | "concurrencyLimit" | "queuePriority" | "queuePaused"
>;

/**
 * Applies the fields that a client sent to an agent, or to `BLANK` for a create.
 *
 * Errors: invalid_agent (empty name, harness with base model, conflicting base_harness, duplicate secrets or memory
 * stores).
 */
export function withFields(before: AgentParts, sent: AgentFields): AgentParts {
  const {
    name,
    agent_type,
    description,
    prompt,
    base_harness: _type,
    concurrency_limit,
    queue_priority,
    queue_paused,
    ...rest
  } = sent;
  const config: Record<string, unknown> = { ...before.config };
  for (const [key, value] of Object.entries(rest)) {
    if (value === null || value === undefined) continue;
    if (key === "memory") setMemory(config, value as Memory);
    else if (isEmpty(value) || (value === 0 && LIMIT_FIELDS.some((field) => field === key))) delete config[key];
    else config[key] = typeof value === "string" ? value.trim() : value;
  }
  applyBaseHarness(config, sent);
  const after = {
    name: name == null ? before.name : name.trim(),
    agentType: agent_type ?? before.agentType,
    description: description ?? before.description,
    prompt: prompt ?? before.prompt,
    config: config as AgentConfig,
    concurrencyLimit: concurrency_limit ?? before.concurrencyLimit,
    queuePriority: queue_priority ?? before.queuePriority,
    queuePaused: queue_paused ?? before.queuePaused,
  };
  assertConsistent(after);
  return after;
}

/** Replaces the attached stores. Automatic memory stays as it is if it is not sent: published updates cannot send it. */
function setMemory(
  config: AgentConfig,
  { auto_memory: auto = config.memory?.auto_memory, attached_stores }: Memory,
): void {
  delete config.memory;
  if (auto || attached_stores) config.memory = omitUndefined({ auto_memory: auto, attached_stores });
}

export const BLANK: AgentParts = {
  name: "",
  agentType: "CUSTOM",
  description: "",
  prompt: "",
  config: {},
  concurrencyLimit: 0,
  queuePriority: 0,
  queuePaused: false,
};

/** Returns the configuration with the names appended to the agent's secrets, without duplicates, in order. */
export const withSecrets = (config: AgentConfig, names: readonly string[]): AgentConfig => ({
  ...config,
  secrets: [...new Set([...(config.secrets ?? []).map(({ name }) => name), ...names])].map((name) => ({ name })),
});

/** Budget of a run; 0 = no limit at this level. */
export const LIMIT_FIELDS = ["step_limit", "token_limit", "cost_limit_usd"] as const;

/** Fields that definition files do not have. */
const OWN_FIELDS: readonly string[] = ["concurrency_limit", "queue_priority", "queue_paused", ...LIMIT_FIELDS];

/**
 * Throws `agent_file_managed` (conflict) if a request changes a field of a file-managed agent that its file defines.
 */
export function assertEditable(agent: Agent, sent: AgentFields): void {
  const sentFields = Object.entries(sent).filter(([, value]) => value !== undefined && value !== null);
  if (!agent.fileManaged || (sentFields.length > 0 && sentFields.every(([key]) => OWN_FIELDS.includes(key)))) return;
  throw new DomainError({
    kind: "conflict",
    reason: "agent_file_managed",
    message: "The factory's files define this agent. Change the files instead.",
  });
}

function applyBaseHarness(config: Record<string, unknown>, { base_harness, harness }: AgentFields): void {
  if (base_harness == null || base_harness === "") return;
  if (harness?.type !== undefined && harness.type !== base_harness)
    throw invalid(`base_harness "${base_harness}" and harness.type "${harness.type}" differ. Set only one of them.`);
  config["harness"] = { ...(config["harness"] as Harness | undefined), type: base_harness };
}

function assertConsistent({ name, config }: AgentParts): void {
  if (name === "") throw invalid("name must not be empty.");
  if (isThirdParty(config.harness) && config.base_model)
    throw invalid("base_model applies to the platform's own harness only. Set harness.model_id instead.");
  assertDistinct(
    config.secrets?.map((secret) => secret.name),
    "secrets",
  );
  assertDistinct(
    config.memory?.attached_stores?.map((store) => store.uid),
    "memory.attached_stores",
  );
}

const isThirdParty = (harness: Harness | undefined): boolean => harness?.type !== undefined && harness.type !== "oz";

function assertDistinct(names: readonly string[] | undefined, field: string): void {
  if (names && new Set(names).size < names.length) throw invalid(`${field} must not contain the same name twice.`);
}

const isEmpty = (value: unknown): boolean =>
  value === "" ||
  (typeof value === "string" && value.trim() === "") ||
  (typeof value === "object" && value !== null && Object.keys(value).length === 0);

const invalid = (message: string): DomainError => invalidArgument("invalid_agent", message);
