import { resourceChanges, type ResourceChange } from "@millwright/definition";
import { invalidArgument } from "@millwright/errors";
import { isObject, type JsonObject, type RepositoryRef } from "./agent-config.ts";

/** A machine type that agents of a factory can name. */
export type Runner = {
  readonly name: string;
  readonly description: string;
  readonly setupCommands: readonly string[];
  readonly dockerImage: string;
  readonly os: string;
  /** x86_64 or aarch64; "": any. */
  readonly arch: string;
  readonly vcpus?: number;
  readonly memoryGb?: number;
};

/** A runner with its uid. `formerUid`: the uid that earlier releases gave it, which clients may have stored. */
export type IdentifiedRunner = Runner & { readonly uid: string; readonly formerUid: string };

/** Returns whether a uid, in any case, identifies a runner. */
export const isRunner = ({ uid, formerUid }: IdentifiedRunner, requestedUid: string): boolean =>
  [uid, formerUid].includes(requestedUid.toLowerCase());

/** A skill of a factory. `agent` "": available to every agent. `error` "": usable. */
export type Skill = {
  readonly path: string;
  readonly name: string;
  readonly agent: string;
  readonly description: string;
  readonly body: string;
  readonly error: string;
};

/** The part of a factory definition that this service stores. */
export type DefinitionPart = {
  readonly repositories: readonly RepositoryRef[];
  readonly runners: readonly Runner[];
  readonly skills: readonly Skill[];
};

/** A value in a definition: its file, and the keys that lead to it. */
export type Spot = { readonly path: string; readonly keys: readonly string[] };

/** The references in a definition that only this service can check. */
export type References = {
  readonly models: readonly { readonly at: Spot; readonly modelId: string }[];
  readonly workerHosts: readonly { readonly at: Spot; readonly workerHost: string }[];
  readonly environments: readonly { readonly at: Spot; readonly environmentId: string }[];
  readonly runners: readonly { readonly at: Spot; readonly runner: string }[];
};

/** A resource that applying a definition would create, change or delete. */
export type PlanItem = ResourceChange<"runner" | "skill">;

const FACTORY_FILE = "factory.yaml";

/**
 * Returns this service's part of a normalised definition (libs/definition). The sender has validated the definition, so
 * a wrong shape is the sender's error.
 *
 * Errors: definition_malformed.
 */
export function readDefinitionPart(definition: JsonObject): DefinitionPart {
  const factory = isObject(definition["factory"]) ? definition["factory"] : {};
  return {
    repositories: objects(factory, "repositories").map((json) => ({
      owner: text(json, "owner"),
      repo: text(json, "repo"),
    })),
    runners: objects(definition, "runners").map(readRunner),
    skills: objects(definition, "skills").map((json) => ({
      path: text(json, "path"),
      name: text(json, "name"),
      agent: text(json, "agent", ""),
      description: text(json, "description", ""),
      body: text(json, "body", ""),
      error: text(json, "error", ""),
    })),
  };
}

function readRunner(json: JsonObject): Runner {
  const { vcpus, memory_gb: memoryGb } = json;
  return {
    name: text(json, "name"),
    description: text(json, "description", ""),
    setupCommands: Array.isArray(json["setup_commands"]) ? json["setup_commands"].map(String) : [],
    dockerImage: text(json, "docker_image", ""),
    os: text(json, "os", "linux"),
    arch: text(json, "arch", ""),
    vcpus: typeof vcpus === "number" ? vcpus : undefined,
    memoryGb: typeof memoryGb === "number" ? memoryGb : undefined,
  };
}

/**
 * Returns the models, worker hosts, runners and environments that a definition names. Models of third-party harnesses
 * are not included, because only those harnesses know them.
 */
export function referencesOf(definition: JsonObject): References {
  const factory = isObject(definition["factory"]) ? definition["factory"] : {};
  const defaults = isObject(factory["agent_defaults"]) ? factory["agent_defaults"] : {};
  const blocks = [
    { path: FACTORY_FILE, below: ["agentDefaults"], block: defaults },
    ...objects(definition, "agents").map((agent) => ({
      path: `agents/${text(agent, "name")}/agent.md`,
      below: [],
      block: agent,
    })),
    ...objects(definition, "automations").map((automation) => ({
      path: `automations/${text(automation, "name")}/automation.md`,
      below: [],
      block: automation,
    })),
  ];
  const values = (keysOf: (block: JsonObject) => readonly string[], read: (block: JsonObject) => unknown) =>
    blocks.flatMap(({ path, below, block }) => {
      const value = read(block);
      return typeof value === "string" && value !== ""
        ? [{ at: { path, keys: [...below, ...keysOf(block)] }, value }]
        : [];
    });
  return {
    models: values((block) => (isObject(block["harness"]) ? ["harness", "model"] : ["model"]), ownModel).map(
      ({ at, value }) => ({ at, modelId: value }),
    ),
    workerHosts: values(
      () => ["workerHost"],
      (block) => block["worker_host"],
    ).map(({ at, value }) => ({ at, workerHost: value })),
    runners: values(
      () => ["runner"],
      (block) => block["runner"],
    ).map(({ at, value }) => ({ at, runner: value })),
    environments: values(
      () => ["environmentId"],
      (block) => block["environment_id"],
    ).map(({ at, value }) => ({ at, environmentId: value })),
  };
}

function ownModel(block: JsonObject): unknown {
  const harness = block["harness"];
  return isObject(harness) ? (harness["type"] === "oz" ? harness["model"] : undefined) : block["model"];
}

/** Returns what activating `next` changes in the resources of `current`, ordered by kind and name. */
export function planChange(current: DefinitionPart | undefined, next: DefinitionPart): PlanItem[] {
  return [
    ...resourceChanges("runner", current?.runners ?? [], next.runners, (runner) => runner.name, changedKeys),
    ...resourceChanges("skill", current?.skills ?? [], next.skills, (skill) => skill.path, changedKeys),
  ];
}

/** Members of a stored resource that are not in its file. */
const STORED_KEYS: readonly string[] = ["uid", "formerUid", "factoryUid"];

/** Returns the fields that differ, as spelled in the normalised definition. */
function changedKeys(a: object, b: object): string[] {
  const [left, right] = [new Map(Object.entries(a)), new Map(Object.entries(b))];
  const keys = [...new Set([...left.keys(), ...right.keys()])].filter((key) => !STORED_KEYS.includes(key));
  const changed = keys.filter((key) => JSON.stringify(left.get(key)) !== JSON.stringify(right.get(key)));
  return changed.map((key) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)).sort();
}

function objects(json: JsonObject, key: string): JsonObject[] {
  const value = json[key] ?? [];
  if (Array.isArray(value) && value.every(isObject)) return value;
  throw malformed(key);
}

function text(json: JsonObject, key: string, absent?: string): string {
  const value = json[key] ?? absent;
  if (typeof value === "string") return value;
  throw malformed(key);
}

const malformed = (key: string): Error =>
  invalidArgument("definition_malformed", `The definition's "${key}" has an invalid form.`);
