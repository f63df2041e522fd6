import type { Uid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";

export type SuiteUid = Uid<"suite">;
export type SuiteTaskUid = Uid<"suite_task">;
export type Actor = { readonly type: string; readonly uid: string };

/**
 * A repository that a task starts from. `ref` is a commit, branch or tag; "" selects the default branch. Snake case,
 * because it is stored and returned unchanged.
 */
export type RepoRef = {
  readonly code_forge: string;
  readonly owner: string;
  readonly repo: string;
  readonly ref: string;
};

/** The settings of a task that people can change. */
export type TaskContent = {
  readonly title: string;
  readonly prompt: string;
  readonly successCriteria: string;
  readonly sourceRunUid: string | null;
  readonly startingRepoRefs: readonly RepoRef[];
  readonly tags: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Rule that decides correctness instead of a model; see `Rule`. */
  readonly rule: JsonObject | null;
};

export type SuiteTask = TaskContent & {
  readonly uid: SuiteTaskUid;
  /** Deprecated numeric id; 0 until the task is stored. */
  readonly id: number;
  /** Name of its definition file; null if created through the API. */
  readonly slug: string | null;
};

/** Overrides for one agent of the factory. "" and null retain the agent's own values. */
export type AgentOverride = {
  readonly agent_uid: string;
  readonly harness: string;
  readonly model: string;
  readonly agent_name: string;
  readonly harness_auth_secret_name: string | null;
};

/**
 * One configuration of a benchmark. Snake case, because it is stored and returned unchanged. "" and null retain the
 * agent's own values.
 */
export type Configuration = {
  readonly uid: string;
  /** Legacy numeric id, unique in its suite or benchmark run. */
  readonly id: number;
  readonly role: "baseline" | "candidate";
  readonly display_name: string;
  readonly harness: string;
  readonly model: string;
  readonly runner_uid: string;
  readonly harness_auth_secret_name: string | null;
  readonly agent_configs: readonly AgentOverride[];
};

/** The settings of a suite that people can change. */
export type SuiteSettings = {
  readonly name: string;
  readonly description: string | null;
  readonly agentUid: string;
  /** Name of the agent in the factory's definition; updated with `agentUid`. */
  readonly factoryAgentType: string;
  readonly configurations: readonly Configuration[];
};

export type Suite = SuiteSettings & {
  readonly uid: SuiteUid;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** Directory of its definition files; null if created through the API. */
  readonly slug: string | null;
  /** Incremented by every change of the suite or its tasks. */
  readonly version: number;
  readonly creator: Actor;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** A suite at one version. */
export type SuiteWithTasks = Suite & { readonly tasks: readonly SuiteTask[] };
