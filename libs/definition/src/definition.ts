/** A definition tree in normalised form: names resolved from paths, aliases replaced, defaults absent. Plain JSON. */
export type Definition = {
  schema_version: "v1alpha1";
  factory: FactoryPart;
  /** By name. */
  agents: AgentPart[];
  /** By name. */
  runners: RunnerPart[];
  /** By name. */
  automations: AutomationPart[];
  /** By name. */
  webhooks: WebhookPart[];
  /** By slug. */
  scorers: ScorerPart[];
  /** By slug. */
  benchmarks: BenchmarkPart[];
  /** By path. A skill with `error` is listed but never used. */
  skills: SkillPart[];
};

export type McpServers = Record<string, { warp_id: string }>;

/** The execution settings of agentDefaults and agents; an absent key inherits. */
export type ExecutionBlock = {
  /** Shorthand: the built-in harness with this model. Excludes `harness`. */
  model?: string;
  harness?: Harness;
  /** Name of a runner of this definition. */
  runner?: string;
  environment_id?: string;
  secrets?: string[];
  mcp_servers?: McpServers;
  /** A self-hosted worker's id, or the hosted literal `HOSTED_WORKER`. */
  worker_host?: string;
};

export type Harness = {
  type: "oz" | "claude" | "codex" | "gemini" | "opencode";
  model?: string;
  reasoning_level?: string;
  auth?: { source: "managedSecret"; secret_name: string } | { source: "workerEnvironment" };
};

export type CodeForge = "GITHUB" | "GITLAB" | "AZURE_DEVOPS";
export type CredentialStrategy = "EXECUTOR" | "CREATOR";

export type FactoryPart = {
  name: string;
  description?: string;
  alias?: string;
  credential_strategy: CredentialStrategy;
  repositories: { owner: string; repo: string; code_forge?: CodeForge }[];
  /** Absent or empty: the repositories of the factory. */
  code_forges?: CodeForge[];
  /** Granted to every agent, in addition to its own. */
  secrets: string[];
  /** Granted to every agent, in addition to its own. */
  mcp_servers: McpServers;
  cloud_providers?: CloudProviders;
  /** Absent: none declared. Each entry is the public Integration record. */
  integrations?: Integration[];
  agent_defaults: ExecutionBlock;
  scorer_defaults?: { runner?: string; secrets?: string[]; mcp_servers?: McpServers };
  scoring?: { default_model?: string };
  self_improvement?: {
    reviewer_type: "none" | "admins" | "team" | "custom";
    failed_run_threshold?: number;
    reviewer_emails?: string[];
  };
};

export type CloudProviders = {
  gcp?: {
    project_number: string;
    workload_identity_federation_pool_id: string;
    workload_identity_federation_provider_id: string;
    service_account_email?: string;
  };
  aws?: { role_arn: string };
};

export type Integration = {
  type: "slack" | "linear" | "jira" | "microsoft-teams";
  jira?: { project_keys?: string[] };
  linear?: { team_ids?: string[] };
  slack?: { auto_respond_to_thread_replies?: boolean };
  "microsoft-teams"?: { auto_respond_to_thread_replies?: boolean };
};

export type AgentType = "CUSTOM" | "FOREMAN" | "TRIAGE" | "SPEC" | "IMPLEMENT" | "REVIEW" | "VERIFY";

export type AgentPart = ExecutionBlock & {
  name: string;
  description?: string;
  agent_type: AgentType;
  /** Absent: the value projected earlier, else the factory's. */
  credential_strategy?: CredentialStrategy;
  prompt: string;
  /** Names of the usable skills: the agent's own, and every shared skill that they do not replace. */
  skills: string[];
};

export type RunnerPart = {
  name: string;
  description?: string;
  setup_commands: string[];
  /** Linux only. */
  docker_image?: string;
  os: "linux" | "macos";
  /** Absent: any. macOS machines always have a shape. */
  arch?: "x86_64" | "aarch64";
  /** macOS only. */
  mac_version?: string;
  vcpus?: number;
  memory_gb?: number;
};

/** Runs that start automatically. Present execution keys override the agent's. */
export type AutomationPart = ExecutionBlock & {
  name: string;
  enabled: boolean;
  /** Absent: the foreman. */
  agent?: string;
  triggers: TriggerPart[];
  prompt: string;
};

export type TriggerPart = {
  provider: string;
  event: string;
  /** All must match; an empty set matches everything. */
  filter: Record<string, { in?: string[]; not_in?: string[] }>;
  /** For webhooks: a validated payload filter. */
  payload?: unknown;
  /** For schedules. */
  schedule?: { cron: string; name?: string };
};

/** An endpoint for senders of deliveries. */
export type WebhookPart = {
  name: string;
  auth_mode: "token" | "url_token" | "signature";
  signature_scheme?: string;
  /** A managed secret of the team. */
  secret_name: string;
  delivery_id_header?: string;
  enabled: boolean;
};

/** A rubric that evaluates finished runs. */
export type ScorerPart = {
  slug: string;
  name: string;
  description?: string;
  /** Names of agents, or every agent. */
  agents: string[] | "*";
  labels: { value: string; score: number; description?: string }[];
  passing_score: number;
  /** Percent of the runs in scope. */
  sampling_rate: number;
  model: string;
  self_improvement: boolean;
  enabled: boolean;
  prompt: string;
};

/** A suite of tasks that measures an agent. */
export type BenchmarkPart = {
  slug: string;
  name: string;
  description?: string;
  agent: string;
  /** In the suite's order. */
  tasks: BenchmarkTaskPart[];
  configurations?: { role: string; display_name?: string; model?: string; harness?: Harness; runner?: string }[];
};

export type BenchmarkTaskPart = {
  slug: string;
  title: string;
  prompt: string;
  success_criteria: string;
  source_run_id?: string;
  starting_repo_refs?: string[];
  tags?: string[];
};

export type SkillPart = {
  name: string;
  /** The agent it belongs to; absent: shared by all agents. */
  agent?: string;
  description: string;
  body: string;
  path: string;
  /** The reason why it cannot be used. */
  error?: string;
};

/** The literal for a worker hosted by the service. `service` is accepted as its synonym. */
export const HOSTED_WORKER = "warp";
