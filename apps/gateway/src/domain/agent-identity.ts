import { DomainError, invalidArgument } from "@millwright/errors";

export const AGENT_TYPES = ["FOREMAN", "TRIAGE", "SPEC", "IMPLEMENT", "REVIEW", "VERIFY", "CUSTOM"] as const;
export type AgentType = (typeof AGENT_TYPES)[number];

export type Harness = {
  type?: string | undefined;
  model_id?: string | undefined;
  reasoning_level?: string | undefined;
};

/** The published fields of an agent that no rule of ours looks into one by one; absent = not set. snake_case, as public. */
export type AgentConfig = {
  environment_id?: string;
  default_runner_uid?: string;
  /** Name of a runner in the factory's definition, instead of its uid; file-managed agents only. */
  runner?: string;
  base_model?: string;
  harness?: Harness;
  harness_auth_secrets?: Record<string, unknown>;
  inference_providers?: Record<string, unknown>;
  mcp_servers?: Record<string, unknown>;
  skills?: string[];
  secrets?: { name: string }[];
  memory?: {
    auto_memory?: { enabled?: boolean | undefined } | undefined;
    attached_stores?: { uid: string }[] | undefined;
  };
  credential_strategy?: string;
  on_behalf_of_enabled?: boolean;
  on_worker_loss?: string;
  step_limit?: number;
  token_limit?: number;
  cost_limit_usd?: number;
  worker_host?: string;
};

/** An agent identity: a service account bound to one team (fields-runs §8.6). */
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
  /** Projected from a definition file, which is the truth. */
  fileManaged: boolean;
  /** Executions at once; 0 = the platform's default. */
  concurrencyLimit: number;
  /** Its runs' place among those of its team. */
  queuePriority: number;
  /** No run of it is started. */
  queuePaused: boolean;
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** What a client sends; undefined and null = not said, an empty value = cleared (PUT is a partial update). */
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
 * Applies what a client sent to an agent (or, for a create, to `BLANK`).
 *
 * Errors: invalid_agent (empty name, harness with base model, conflicting base_harness, duplicate secrets or memory stores).
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
    if (isEmpty(value) || (value === 0 && LIMIT_FIELDS.some((field) => field === key))) delete config[key];
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

/** Names added to the agent's secrets, each once, in order. */
export const withSecrets = (config: AgentConfig, names: readonly string[]): AgentConfig => ({
  ...config,
  secrets: [...new Set([...(config.secrets ?? []).map(({ name }) => name), ...names])].map((name) => ({ name })),
});

/** What a run may spend; 0 = not limited here. */
export const LIMIT_FIELDS = ["step_limit", "token_limit", "cost_limit_usd"] as const;

/** What no file says. */
const OWN_FIELDS: readonly string[] = ["concurrency_limit", "queue_priority", "queue_paused", ...LIMIT_FIELDS];

/** Errors: agent_file_managed (conflict): what a file says is changed in the file. */
export function assertEditable(agent: Agent, sent: AgentFields): void {
  const said = Object.entries(sent).filter(([, value]) => value !== undefined && value !== null);
  if (!agent.fileManaged || (said.length > 0 && said.every(([key]) => OWN_FIELDS.includes(key)))) return;
  throw new DomainError({
    kind: "conflict",
    reason: "agent_file_managed",
    message: "This agent is defined in its factory's files; change it there.",
  });
}

function applyBaseHarness(config: Record<string, unknown>, { base_harness, harness }: AgentFields): void {
  if (base_harness == null || base_harness === "") return;
  if (harness?.type !== undefined && harness.type !== base_harness) throw invalid("base_harness contradicts harness.");
  config["harness"] = { ...(config["harness"] as Harness | undefined), type: base_harness };
}

function assertConsistent({ name, config }: AgentParts): void {
  if (name === "") throw invalid("name must not be empty.");
  if (isThirdParty(config.harness) && config.base_model)
    throw invalid("base_model serves the own harness only; name the model in harness.model_id.");
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
  if (names && new Set(names).size < names.length) throw invalid(`${field} names something twice.`);
}

const isEmpty = (value: unknown): boolean =>
  value === "" ||
  (typeof value === "string" && value.trim() === "") ||
  (typeof value === "object" && value !== null && Object.keys(value).length === 0);

const invalid = (message: string): DomainError => invalidArgument("invalid_agent", message);
