import type { AgentUid, EnvironmentUid, FactoryUid } from "@millwright/ids";
import type { FrozenJudge, Judge } from "./judge.ts";
import type { FrozenMcpServer } from "./mcp-servers.ts";
import type { ProviderCredentials } from "./model-providers.ts";
import type { ScopeSettings } from "./queue-settings.ts";
import type { LossPolicy } from "./run-state.ts";
import type { JsonObject, Owner } from "./run.ts";
import type { TrialSettings } from "./trial-settings.ts";

export type FrozenSkill = {
  readonly name: string;
  readonly description: string;
  readonly body: string;
  readonly spec: string;
  /** The run is of this skill. */ readonly preloaded?: true;
};
/** `commit`: where the run starts; absent: at the head of the default branch. */
export type FrozenRepository = {
  readonly owner: string;
  readonly repo: string;
  readonly code_host_uid?: string;
  readonly commit?: string;
};

/** The workspace that another run left; without a snapshot it was as its clones. */
export type BorrowedWorkspace = { readonly run_uid: string; readonly snapshot_key?: string };

/**
 * Everything an execution of a run needs, resolved once when the run is created and stored as `runs.frozen`.
 * Names of secrets, never values. Snake case, because it is a JSON document.
 */
export type FrozenConfig = {
  readonly agent_prompt: string;
  readonly base_prompt: string;
  readonly model_id: string;
  readonly provider: string;
  readonly harness: string;
  /** Of a third-party harness. */
  readonly reasoning_level?: string;
  /** Name of the managed secret that authenticates it: for the worker's gateway alone, never in a sandbox. */
  readonly harness_secret?: string;
  readonly skills: readonly FrozenSkill[];
  readonly repositories: readonly FrozenRepository[];
  readonly setup_commands: readonly string[];
  readonly docker_image: string;
  /** Absent: what the worker gives a run that asks for nothing. */
  readonly instance_shape?: { readonly vcpus: number; readonly memory_gb: number };
  /** What the environment leaves of what the worker lets runs reach; absent: all of it. */
  readonly allowed_hosts?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly secret_names: readonly string[];
  /** By name; absent: none. */
  readonly mcp_servers?: Readonly<Record<string, FrozenMcpServer>>;
  readonly worker_host?: string;
  /** What a worker must offer; decides the lane. */
  readonly requirements: {
    readonly harness: string;
    readonly image?: string;
    readonly arch?: string;
    readonly worker_host?: string;
  };
  readonly idle_timeout_minutes: number;
  /** For how long a worker keeps what a failed setup has left; absent: not at all. */
  readonly failure_session_retention_minutes?: number;
  /** Absent: resume. */
  readonly on_worker_loss?: LossPolicy;
  /** What the run may spend; absent: the platform's limits alone. Costs are those of all runs below it, too. */
  readonly step_limit?: number;
  readonly token_limit?: number;
  readonly cost_limit_micros?: number;
  /** A run above this one has a cost limit. */
  readonly cost_limited_above?: true;
  readonly factory_uid?: FactoryUid;
  readonly agent_uid?: AgentUid;
  readonly agent_name?: string;
  /** Absent: no agent, or the run was created before agent types were frozen. */
  readonly agent_type?: string;
  readonly definition_version?: number;
  readonly environment_uid?: EnvironmentUid;
  /** Of a benchmark trial and the runs below it. */
  readonly trial?: TrialSettings;
  /** Absent: no judge run. */
  readonly judge?: FrozenJudge;
  /** What the first execution starts from; absent: fresh clones. */
  readonly workspace?: BorrowedWorkspace;
  readonly spawnable_agents: readonly string[];
  /** Key → layer it came from. */
  readonly provenance: Readonly<Record<string, string>>;
};

/** What config resolution answers for one request. */
export type ResolvedRun = {
  /** Public AgentConfigSnapshot (fields-runs §4). */
  readonly agentConfig: JsonObject;
  readonly frozen: FrozenConfig;
  /** What the records say now; a factory's settings come by its events alone. */
  readonly queueSettings: ScopeSettings;
  /** Public `agent_skill` (fields-runs §6.3). */
  readonly skill?: JsonObject;
  /** The principal the run acts as: the agent, or the creator when there is none. */
  readonly executorUid: string;
};

/** What `resolveRunConfig` is asked: the part of a create request that decides the configuration, with its owner settled. */
export type ResolveRunRequest = {
  readonly owner: Owner;
  /** AgentConfigSnapshot of the request, unchecked. */
  readonly config: JsonObject;
  /** The same of what dispatches the run. */
  readonly dispatcherConfig?: JsonObject;
  readonly skill?: string;
  readonly agentUid?: string;
  /** With `factoryUid` and no `agentUid`: an agent of that factory by name. */
  readonly agentName?: string;
  readonly factoryUid?: string;
  readonly judge?: Judge;
  readonly trial?: TrialSettings;
  /** Replace those of the configuration. */
  readonly repositories?: readonly FrozenRepository[];
  readonly workspace?: BorrowedWorkspace;
};

/** What is read anew each time an execution is accepted, because it must not be stored (tokens, secret values). */
export type AssignmentDetails = {
  readonly repositories: readonly {
    readonly owner: string;
    readonly name: string;
    readonly cloneUrl: string;
    /** "" = the repository's default branch. */
    readonly baseBranch: string;
    readonly workBranch: string;
    /** "" = the head of the base branch. */
    readonly baseCommit: string;
    /** For the worker's own git, never for the sandbox; "" = none. */
    readonly authorizationHeader: string;
    /** "github", "gitlab" or "local". */
    readonly codeHost: string;
  }[];
  /** By name. */
  readonly secrets: Readonly<Record<string, string>>;
  /** For the worker alone. Absent: the model needs no provider, or nobody has configured it. */
  readonly providerCredentials?: ProviderCredentials;
};
