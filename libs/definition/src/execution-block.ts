import { omitUndefined } from "@millwright/json";
import { HOSTED_WORKER, type ExecutionBlock, type Harness, type McpServers } from "./definition.ts";
import type { Fields, Placed } from "./fields.ts";

/** The keys of the execution settings. */
export const EXECUTION_KEYS = [
  "model",
  "harness",
  "runner",
  "environmentId",
  "secrets",
  "mcpServers",
  "workerHost",
] as const;

/** An execution block, and the positions that rules across files need. */
export type ReadBlock = {
  block: ExecutionBlock;
  runner?: Placed<string>;
  workerHost?: Placed<string>;
  /** Set if the harness takes its credentials from the worker's environment: the position of that setting. */
  workerAuth?: Placed<true>;
};

/**
 * Reads the execution keys of a mapping. With `needsModel`, exactly one of `model` and `harness` is required; both are
 * an error in any case. A null key inherits; a null or empty `workerHost` removes an inherited one.
 */
export function readExecutionBlock(fields: Fields, options: { needsModel: boolean }): ReadBlock {
  if (fields.has("model") && fields.has("harness")) {
    const [model, harness] = [fields.keyAt("model"), fields.keyAt("harness")];
    const later =
      model.line > harness.line || (model.line === harness.line && model.column > harness.column) ? model : harness;
    fields.error(
      later,
      "FF_CONFLICTING_FIELDS",
      "model and harness exclude each other: model is short for the built-in harness with that model.",
    );
  }
  const isHostCleared = fields.isNull("workerHost") || fields.isBlank("workerHost");
  fields.inherit("model", "runner", "environmentId");
  if (options.needsModel && !fields.has("model") && !fields.has("harness"))
    fields.error(fields.at, "FF_MISSING_FIELD", "One of model and harness is required.");
  const model = fields.text("model");
  const harness = readHarness(fields);
  const runner = fields.text("runner");
  const environmentId = fields.text("environmentId");
  const secrets = fields.texts("secrets");
  const mcpServers = readMcpServers(fields);
  const workerHost = isHostCleared ? HOSTED_WORKER : fields.text("workerHost");
  const hosted = workerHost === "service" ? HOSTED_WORKER : workerHost;
  return {
    block: omitUndefined({
      model,
      harness: harness?.value,
      runner,
      environment_id: environmentId,
      secrets,
      mcp_servers: mcpServers,
      worker_host: hosted,
    }),
    runner: runner === undefined ? undefined : { value: runner, at: fields.valueAt("runner") },
    workerHost: hosted === undefined ? undefined : { value: hosted, at: fields.valueAt("workerHost") },
    workerAuth: harness?.workerAuth,
  };
}

export const HARNESS_TYPES = ["oz", "claude", "claude-code", "codex", "gemini", "opencode"] as const;

function readHarness(parent: Fields): { value: Harness; workerAuth?: Placed<true> } | undefined {
  const fields = parent.fields("harness", ["type", "model", "reasoningLevel", "auth"]);
  if (!fields) return undefined;
  fields.inherit("model", "reasoningLevel", "auth");
  fields.require("type");
  const type = fields.oneOf("type", HARNESS_TYPES);
  const model = fields.text("model");
  const reasoningLevel = fields.text("reasoningLevel");
  const auth = readAuth(fields);
  if (type === "oz") {
    for (const key of ["reasoningLevel", "auth"]) {
      if (fields.has(key))
        fields.error(fields.keyAt(key), "FF_CONFLICTING_FIELDS", `The built-in harness takes no ${key}.`);
    }
  }
  if (!type) return undefined;
  return {
    value: {
      type: type === "claude-code" ? "claude" : type,
      ...omitUndefined({ model, reasoning_level: reasoningLevel, auth: auth?.value }),
    },
    workerAuth: auth?.value.source === "workerEnvironment" && type !== "oz" ? { value: true, at: auth.at } : undefined,
  };
}

function readAuth(parent: Fields): Placed<NonNullable<Harness["auth"]>> | undefined {
  const fields = parent.fields("auth", ["source", "secretName"]);
  if (!fields) return undefined;
  fields.require("source");
  const source = fields.oneOf("source", ["managedSecret", "workerEnvironment"]);
  const secretName = fields.text("secretName");
  const at = fields.valueAt("source");
  if (source === "workerEnvironment") {
    if (fields.has("secretName"))
      fields.error(
        fields.keyAt("secretName"),
        "FF_CONFLICTING_FIELDS",
        "secretName belongs to the source managedSecret only.",
      );
    return { value: { source }, at };
  }
  if (source === "managedSecret") fields.require("secretName");
  return source && secretName !== undefined ? { value: { source, secret_name: secretName }, at } : undefined;
}

/** The published key of a managed server reference, and our synonym. */
export const REFERENCE_KEYS = ["warpId", "managedId"] as const;

/** Reads `mcpServers`: a map from name to a reference of a managed server. */
export function readMcpServers(parent: Fields): McpServers | undefined {
  const fields = parent.fields("mcpServers", "any");
  if (!fields) return undefined;
  const servers: McpServers = {};
  for (const name of fields.keys()) {
    const server = fields.fields(name, REFERENCE_KEYS);
    if (!server) continue;
    const [key, ...more] = REFERENCE_KEYS.filter((candidate) => server.has(candidate));
    if (key === undefined) server.error(server.at, "FF_MISSING_FIELD", `${REFERENCE_KEYS[0]} is required.`);
    else if (more.length > 0)
      server.error(
        server.keyAt(REFERENCE_KEYS[1]),
        "FF_CONFLICTING_FIELDS",
        `${REFERENCE_KEYS.join(" and ")} are the same key.`,
      );
    const id = key && server.text(key);
    if (id !== undefined && id !== "")
      Object.defineProperty(servers, name, {
        value: { warp_id: id },
        enumerable: true,
        configurable: true,
        writable: true,
      });
  }
  return servers;
}
