import { resourceChanges, type ResourceChange } from "@millwright/definition";
import { invalidArgument } from "@millwright/errors";
import { isObject, type JsonObject, type RepositoryRef } from "./agent-config.ts";

/** A machine that agents of a factory can name (factory-files §8). */
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

/** A runner with its uid. `formerUid`: how earlier releases named it; clients may have stored it. */
export type IdentifiedRunner = Runner & { readonly uid: string; readonly formerUid: string };

/** Whether a uid, in any case, is that of a runner. */
export const isRunner = ({ uid, formerUid }: IdentifiedRunner, asked: string): boolean =>
  [uid, formerUid].includes(asked.toLowerCase());

/** A procedure of a factory (factory-files §12). `agent` "": of every agent. `error` "": usable. */
export type Skill = {
  readonly path: string;
  readonly name: string;
  readonly agent: string;
  readonly description: string;
  readonly body: string;
  readonly error: string;
};

/** What this service keeps of a factory definition. */
export type DefinitionPart = {
  readonly repositories: readonly RepositoryRef[];
  readonly runners: readonly Runner[];
  readonly skills: readonly Skill[];
};

/** A file of the definition, and the keys that lead to a value in it. */
export type Spot = { readonly path: string; readonly keys: readonly string[] };

/** What the definition says in places that only this service can check. */
export type References = {
  readonly models: readonly { readonly at: Spot; readonly modelId: string }[];
  readonly workerHosts: readonly { readonly at: Spot; readonly workerHost: string }[];
  readonly environments: readonly { readonly at: Spot; readonly environmentId: string }[];
  readonly runners: readonly { readonly at: Spot; readonly runner: string }[];
};

/** One resource that applying would create, change or delete. */
export type PlanItem = ResourceChange<"runner" | "skill">;

const FACTORY_FILE = "factory.yaml";

/**
 * Takes this service's part out of a normalised definition (libs/definition). The sender has validated it, so a wrong shape
 * is the sender's fault.
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
    ...(typeof vcpus === "number" ? { vcpus } : {}),
    ...(typeof memoryGb === "number" ? { memoryGb } : {}),
  };
}

/** Where the definition names models, worker hosts and environments. Harness models of third parties are theirs to know. */
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

/** What activating `next` changes in the resources of `current`; by kind, then name. */
export function planChange(current: DefinitionPart | undefined, next: DefinitionPart): PlanItem[] {
  return [
    ...resourceChanges("runner", current?.runners ?? [], next.runners, (runner) => runner.name, changedKeys),
    ...resourceChanges("skill", current?.skills ?? [], next.skills, (skill) => skill.path, changedKeys),
  ];
}

/** What a stored resource has beside what its file says. */
const STORED_KEYS: readonly string[] = ["uid", "formerUid", "factoryUid"];

/** Fields that differ, in the spelling of the definition's normalised form. */
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
  invalidArgument("definition_malformed", `The definition's "${key}" does not have the agreed form.`);
