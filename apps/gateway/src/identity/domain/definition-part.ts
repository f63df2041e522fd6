import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { invalidArgument } from "@millwright/errors";
import {
  AGENT_TYPES,
  LIMIT_FIELDS,
  type Agent,
  type AgentConfig,
  type AgentType,
  type Harness,
} from "./agent-identity.ts";
import { canonicalJson, omitUndefined } from "@millwright/json";

/**
 * An agent as its file describes it. If `credential_strategy` is absent, the value of the earlier projection is
 * retained.
 */
export type DefinedAgent = Pick<Agent, "name" | "agentType" | "description" | "prompt" | "config">;

/** This service's part of a factory definition. */
export type DefinitionPart = {
  agents: DefinedAgent[];
  /** The configuration layer that the factory sets for all its agents. */
  layer: JsonObject;
  /** References to managed secrets: the file, the keys that lead to the reference, and the name. */
  secretNames: { path: string; keys: string[]; name: string }[];
  /** E-mail addresses of people who must be members of the team. */
  reviewerEmails: { path: string; keys: string[]; email: string }[];
  /** References to agents in automations. */
  agentNames: { path: string; keys: string[]; name: string }[];
};

export type PlanItem = {
  kind: "agent" | "factory";
  name: string;
  action: "create" | "update" | "delete" | "unchanged";
  changedFields: string[];
};

/**
 * Returns this service's part of a normalised definition (libs/definition `Definition`). The sender has validated it.
 *
 * Errors: definition_malformed.
 */
export function readDefinitionPart(definition: JsonObject): DefinitionPart {
  const factory = object(definition["factory"], "factory");
  const defaults = object(factory["agent_defaults"] ?? {}, "factory.agent_defaults");
  const { base_model, ...blockOfDefaults } = executionConfig(defaults);
  const agents = list(definition["agents"], "agents").map((each) => object(each, "agents"));
  const automations = list(definition["automations"] ?? [], "automations").map((each) => object(each, "automations"));
  const fileOf = (automation: JsonObject): string => `automations/${text(automation["name"])}/automation.md`;
  const named = (path: string, from: JsonObject, below: string[] = []) => [
    ...texts(from["secrets"]).map((name) => ({ path, keys: [...below, "secrets", name], name })),
    ...authSecret(from).map((name) => ({ path, keys: [...below, "harness", "auth", "secretName"], name })),
  ];
  return {
    agents: agents.map(readAgent),
    layer: omitUndefined({
      ...blockOfDefaults,
      model_id: base_model,
      credential_strategy: factory["credential_strategy"],
      factory_secrets: texts(factory["secrets"]).map((name) => ({ name })),
      factory_mcp_servers: factory["mcp_servers"],
      repositories: factory["repositories"],
    }) as JsonObject,
    secretNames: [
      ...named("factory.yaml", factory),
      ...named("factory.yaml", defaults, ["agentDefaults"]),
      ...agents.flatMap((each) => named(`agents/${text(each["name"])}/agent.md`, each)),
      ...automations.flatMap((each) => named(fileOf(each), each)),
    ],
    reviewerEmails: texts(object(factory["self_improvement"] ?? {}, "factory.self_improvement")["reviewer_emails"]).map(
      (email) => ({ path: "factory.yaml", keys: ["selfImprovement", "reviewerEmails", email], email }),
    ),
    agentNames: automations.flatMap((each) =>
      typeof each["agent"] === "string" ? [{ path: fileOf(each), keys: ["agent"], name: each["agent"] }] : [],
    ),
  };
}

function readAgent(json: JsonObject): DefinedAgent {
  const { name, agent_type: agentType, description, prompt } = json;
  if (typeof name !== "string" || !AGENT_TYPES.includes(agentType as AgentType)) throw malformed("agents");
  const skills = texts(json["skills"]);
  return {
    name,
    agentType: agentType as AgentType,
    description: text(description),
    prompt: text(prompt),
    config: omitUndefined({
      ...executionConfig(json),
      ...(skills.length > 0 ? { skills } : {}),
      credential_strategy: json["credential_strategy"] as string | undefined,
    }),
  };
}

/** Converts an execution block of a definition file to the published fields of an agent. */
function executionConfig(block: JsonObject): AgentConfig {
  const harness = block["harness"] === undefined ? undefined : object(block["harness"], "harness");
  const isOwn = harness === undefined || harness["type"] === "oz";
  const model = (block["model"] ?? (isOwn ? harness?.["model"] : undefined)) as string | undefined;
  const [authName] = authSecret(block);
  return omitUndefined({
    base_model: model,
    harness:
      harness &&
      (omitUndefined({
        type: harness["type"],
        model_id: isOwn ? undefined : harness["model"],
        reasoning_level: harness["reasoning_level"],
      }) as Harness),
    harness_auth_secrets:
      harness && authName !== undefined ? { [`${text(harness["type"])}_auth_secret_name`]: authName } : undefined,
    runner: block["runner"] as string | undefined,
    environment_id: block["environment_id"] as string | undefined,
    secrets: block["secrets"] === undefined ? undefined : texts(block["secrets"]).map((name) => ({ name })),
    mcp_servers: block["mcp_servers"] as JsonObject | undefined,
    worker_host: block["worker_host"] as string | undefined,
  });
}

function authSecret(block: JsonObject): string[] {
  const harness = block["harness"] as JsonObject | undefined;
  const name = (harness?.["auth"] as JsonObject | undefined)?.["secret_name"];
  return typeof name === "string" ? [name] : [];
}

/**
 * Returns the agent with values of the earlier projection retained: the credential strategy if the file omits it, and
 * limits, which files cannot have and people set through the API.
 */
export function withOwnFields(next: DefinedAgent, before: AgentConfig = {}): DefinedAgent {
  const ownFields = ["credential_strategy", ...LIMIT_FIELDS] as const;
  const own = Object.fromEntries(
    ownFields.flatMap((key) =>
      before[key] === undefined || next.config[key] !== undefined ? [] : [[key, before[key]]],
    ),
  );
  return Object.keys(own).length === 0 ? next : { ...next, config: { ...next.config, ...own } };
}

/** Returns the public names of the fields in which an agent differs from its file. */
export function changedFields(before: DefinedAgent, next: DefinedAgent): string[] {
  const flat = ({ agentType, description, prompt, config }: DefinedAgent): Record<string, unknown> => ({
    agent_type: agentType,
    description,
    prompt,
    ...config,
  });
  const [a, b] = [flat(before), flat(next)];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .filter((key) => canonicalJson(a[key]) !== canonicalJson(b[key]))
    .toSorted();
}

/** Returns the changes that activating the part would make. Agents are matched by name. */
export function planOf(
  part: DefinitionPart,
  current: { agents: readonly Agent[]; layer: JsonObject | undefined },
): PlanItem[] {
  const before = new Map(current.agents.map((agent) => [agent.name, agent]));
  const after = new Map(part.agents.map((agent) => [agent.name, agent]));
  const names = [
    ...new Set([...after.keys(), ...current.agents.filter((agent) => agent.fileManaged).map(({ name }) => name)]),
  ].toSorted();
  const agents = names.map((name): PlanItem => {
    const [old, next] = [before.get(name), after.get(name)];
    if (!old || !next) return { kind: "agent", name, action: next ? "create" : "delete", changedFields: [] };
    const fields = changedFields(old, withOwnFields(next, old.config));
    return {
      kind: "agent",
      name,
      action: fields.length > 0 || !old.fileManaged ? "update" : "unchanged",
      changedFields: fields,
    };
  });
  const isSame = current.layer !== undefined && canonicalJson(current.layer) === canonicalJson(part.layer);
  const factory: PlanItem = {
    kind: "factory",
    name: "factory.yaml",
    action: current.layer ? (isSame ? "unchanged" : "update") : "create",
    changedFields: [],
  };
  return [factory, ...agents];
}

function object(value: JsonValue | undefined, where: string): JsonObject {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return value;
  throw malformed(where);
}

function list(value: JsonValue | undefined, where: string): JsonValue[] {
  if (Array.isArray(value)) return value;
  throw malformed(where);
}

const text = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "");

const texts = (value: JsonValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];

const malformed = (where: string): Error =>
  invalidArgument("definition_malformed", `The definition's ${where} has an invalid form.`);
