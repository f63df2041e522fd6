import { createHash } from "node:crypto";
import { isUuid } from "@millwright/ids";
import { canonicalJson, type JsonObject } from "@millwright/json";
import type { Rule } from "./rule.ts";
import type { Label } from "./scorer.ts";

/** A repository at the commit that was current when the benchmark was launched. */
export type PinnedRepo = {
  readonly code_forge: string;
  readonly owner: string;
  readonly repo: string;
  readonly commit: string;
};

export type ManifestTask = {
  readonly title: string;
  readonly prompt: string;
  readonly success_criteria: string;
  /** Rule that decides correctness instead of a model. */
  readonly rule: JsonObject | null;
  readonly tags: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Repositories that trials of the task start from. */
  readonly repositories: readonly PinnedRepo[];
};

export type ManifestAgent = {
  readonly name: string;
  /** Configuration layers, most specific first, without identifiers of the installation. */
  readonly layers: readonly { readonly source: string; readonly config: JsonObject }[];
  /** Content of the environment that the layers reference. */
  readonly environment: JsonObject | null;
  readonly skills: readonly { readonly name: string; readonly description: string; readonly body: string }[];
};

/** A runner that agents or configurations reference. */
export type ManifestRunner = { readonly name: string; readonly content: JsonObject };

export type ManifestOverride = {
  readonly agent_name: string;
  readonly harness: string;
  readonly model: string;
  readonly harness_auth_secret_name: string | null;
};

export type ManifestConfiguration = {
  readonly role: "baseline" | "candidate";
  readonly display_name: string;
  readonly harness: string;
  readonly model: string;
  /** Name of one of `runners`; "" selects the agent's own. */
  readonly runner: string;
  readonly harness_auth_secret_name: string | null;
  /** One entry per agent of `agents`, in the same order. */
  readonly agent_configs: readonly ManifestOverride[];
};

/** The frozen settings of a scorer: the members of `AttemptConfig` except the version. */
export type ManifestScorer = {
  readonly name: string;
  readonly kind: string;
  readonly labels: readonly Label[];
  readonly threshold: number;
  readonly scoring_prompt: string;
  readonly model_id: string;
  readonly rule: Rule | null;
  readonly agent_config: JsonObject | null;
};

/** Everything that decides the results of a benchmark run, without uids, times or numbers of an installation. */
export type ManifestContent = {
  readonly format: "millwright.benchmark.v1";
  readonly repetition_count: number;
  /** The agent that executes the tasks, followed by the agents that it can delegate to, ordered by name. */
  readonly agents: readonly ManifestAgent[];
  readonly tasks: readonly ManifestTask[];
  readonly configurations: readonly ManifestConfiguration[];
  /** Runners that agents and configurations reference, ordered by name. */
  readonly runners: readonly ManifestRunner[];
  /** The correctness scorer, followed by the other scorers, ordered by name. */
  readonly scorers: readonly ManifestScorer[];
};

/**
 * The records of this installation that the content was created from. Lists have the same order as in the content. Not
 * part of the hash.
 */
export type ManifestIdentifiers = {
  readonly factory_uid: string;
  readonly suite_uid: string;
  readonly suite_version: number;
  readonly agents: readonly {
    readonly uid: string;
    readonly layers: readonly { readonly source: string; readonly uid: string; readonly version: number }[];
  }[];
  readonly tasks: readonly { readonly uid: string; readonly id: number; readonly source_run_uid: string | null }[];
  readonly configurations: readonly { readonly uid: string; readonly id: number; readonly runner_uid: string }[];
  readonly scorers: readonly { readonly uid: string; readonly id: number; readonly version: number }[];
  /** The selection as people made it; empty selects all applicable scorers. */
  readonly scorer_selection: readonly string[];
};

/** A manifest as it is stored and returned. Clients can compute the hash of `content` themselves. */
export type Manifest = { readonly content: ManifestContent; readonly identifiers: ManifestIdentifiers };

/** Returns the SHA-256 of the canonical JSON of the content, in lower-case hex. */
export const manifestHash = (content: ManifestContent): string =>
  createHash("sha256").update(canonicalJson(content)).digest("hex");

/** Members of configurations that identify records of one installation, including values that are not UUIDs. */
const IDENTIFIER_KEYS: ReadonlySet<string> = new Set(["environment_id", "runner_id", "warp_id", "memory_stores"]);

/** Returns a configuration without the members that identify records of one installation. */
export function withoutIdentifiers(json: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(json).flatMap(([key, value]) =>
      IDENTIFIER_KEYS.has(key) || isUid(value) ? [] : [[key, withoutIdentifiersIn(value)]],
    ),
  ) as JsonObject;
}

const isUid = (value: unknown): boolean => typeof value === "string" && isUuid(value);

const withoutIdentifiersIn = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.filter((entry) => !isUid(entry)).map(withoutIdentifiersIn)
    : value !== null && typeof value === "object"
      ? withoutIdentifiers(value as JsonObject)
      : value;
