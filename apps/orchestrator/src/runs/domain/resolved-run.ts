import type { FrozenRepository } from "./pinned-repository.ts";
import type { AgentUid, EnvironmentUid, FactoryUid } from "@millwright/ids";
import type { FrozenJudge, Judge } from "./judge.ts";
import type { FrozenMcpServer } from "../../catalog/domain/mcp-servers.ts";
import type { ProviderCredentials } from "../../catalog/domain/model-providers.ts";
import type { ScopeSettings } from "../../catalog/domain/queue-settings.ts";
import type { LossPolicy } from "../../catalog/domain/agent-config.ts";
import type { JsonObject, Owner } from "./run.ts";
import type { TrialSettings } from "./trial-settings.ts";

export type FrozenSkill = {
  readonly name: string;
  readonly description: string;
  readonly body: string;
  readonly spec: string;
  /** The run executes this skill. */ readonly preloaded?: true;
};
/** The workspace of another run. Without a snapshot, it equals its clones. */
export type BorrowedWorkspace = { readonly run_uid: string; readonly snapshot_key?: string };

/**
 * Everything an execution of a run needs, resolved once when the run is created and stored as `runs.frozen`. Contains
 * the names of secrets, never their values. The keys are in snake case, because it is a JSON document.
 */
export type FrozenConfig = {
  readonly agent_prompt: string;
  readonly base_prompt: string;
  readonly model_id: string;
  readonly provider: string;
  readonly harness: string;
  /** Third-party harnesses only. */
  readonly reasoning_level?: string;
  /**
   * Name of the managed secret that authenticates the harness. Only the worker's gateway gets its value, never a
   * sandbox.
   */
  readonly harness_secret?: string;
  readonly skills: readonly FrozenSkill[];
  readonly repositories: readonly FrozenRepository[];
  readonly setup_commands: readonly string[];
  readonly docker_image: string;
  /** Absent: the worker's default shape. */
  readonly instance_shape?: { readonly vcpus: number; readonly memory_gb: number };
  /** The environment's restriction of the hosts that the worker allows; absent: all of them. */
  readonly allowed_hosts?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly secret_names: readonly string[];
  /** By name; absent: none. */
  readonly mcp_servers?: Readonly<Record<string, FrozenMcpServer>>;
  readonly worker_host?: string;
  /** What a worker must offer. Determines the lane. */
  readonly requirements: {
    readonly harness: string;
    readonly image?: string;
    readonly arch?: string;
    readonly worker_host?: string;
  };
  readonly idle_timeout_minutes: number;
  /** How long a worker retains the workspace of a failed setup; absent: it does not. */
  readonly failure_session_retention_minutes?: number;
  /** Absent: resume. */
  readonly on_worker_loss?: LossPolicy;
  /** Spending limits; absent: only the platform's limits apply. The cost limit also covers all descendants. */
  readonly step_limit?: number;
  readonly token_limit?: number;
  readonly cost_limit_micros?: number;
  /** An ancestor has a cost limit. */
  readonly cost_limited_above?: true;
  readonly factory_uid?: FactoryUid;
  readonly agent_uid?: AgentUid;
  readonly agent_name?: string;
  /** Absent: the run has no agent, or was created before agent types were stored. */
  readonly agent_type?: string;
  readonly definition_version?: number;
  readonly environment_uid?: EnvironmentUid;
  /** Settings of a benchmark trial, in the trial and its descendants. */
  readonly trial?: TrialSettings;
  /** Absent: the run is no judge run. */
  readonly judge?: FrozenJudge;
  /** The workspace that the first execution starts with; absent: fresh clones. */
  readonly workspace?: BorrowedWorkspace;
  readonly spawnable_agents: readonly string[];
  /** Key → level that it comes from. */
  readonly provenance: Readonly<Record<string, string>>;
};

/** The result of resolving the configuration of one request. */
export type ResolvedRun = {
  /** Public AgentConfigSnapshot. */
  readonly agentConfig: JsonObject;
  readonly frozen: FrozenConfig;
  /** The current settings in the team's and agent's records. The settings of factories are received by events only. */
  readonly queueSettings: ScopeSettings;
  /** Public `agent_skill`. */
  readonly skill?: JsonObject;
  /** The principal that the run acts as: its agent, or its creator if it has none. */
  readonly executorUid: string;
};

/**
 * The request of `resolveRunConfig`: the part of a create request that determines the configuration, with its owner
 * resolved.
 */
export type ResolveRunRequest = {
  readonly owner: Owner;
  /** AgentConfigSnapshot of the request, unchecked. */
  readonly config: JsonObject;
  /** AgentConfigSnapshot of the dispatcher, unchecked. */
  readonly dispatcherConfig?: JsonObject;
  readonly skill?: string;
  readonly agentUid?: string;
  /** With `factoryUid` and no `agentUid`: the name of an agent of that factory. */
  readonly agentName?: string;
  readonly factoryUid?: string;
  readonly judge?: Judge;
  readonly trial?: TrialSettings;
  /** Replace the repositories of the configuration. */
  readonly repositories?: readonly FrozenRepository[];
  readonly workspace?: BorrowedWorkspace;
};

/**
 * Values that are read again each time an execution is accepted, because they must not be stored (tokens, secret
 * values).
 */
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
    /** For git of the worker itself, never for the sandbox; "" = none. */
    readonly authorizationHeader: string;
    /** "github", "gitlab" or "local". */
    readonly codeHost: string;
  }[];
  /** Values by name. */
  readonly secrets: Readonly<Record<string, string>>;
  /** For the worker only. Absent: the model needs no provider, or its provider is not configured. */
  readonly providerCredentials?: ProviderCredentials;
};
