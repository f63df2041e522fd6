import { invalidArgument, type DomainError } from "@millwright/errors";
import type { EnvironmentUid } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import { isObject, type JsonObject, type RepositoryRef } from "./agent-config.ts";
import type { Owner } from "@millwright/caller";

/** A named configuration of sandboxes. `config` is the public EnvironmentConfig, already checked. */
export type Environment = {
  readonly uid: EnvironmentUid;
  readonly owner: Owner;
  readonly config: JsonObject;
  readonly creatorUid: string;
  readonly lastEditorUid: string;
  readonly updatedAt: Date;
  /** True if any caller that knows the uid may use the environment. Using it adds it to the caller's list. */
  readonly linkSharing: boolean;
  /** How the caller has access to it. */
  readonly access: "owned" | "granted" | "link";
};

/** Access to an environment for a team or user other than its owner. */
export type EnvironmentGrant = {
  readonly uid: string;
  readonly grantee: Owner;
  readonly creatorUid: string;
  readonly createdAt: Date;
};

/** Limits of an environment, which bound the size of rows and the duration of setups. */
export const ENVIRONMENT_LIMITS = {
  nameMax: 100,
  repositoriesMax: 50,
  setupCommandsMax: 100,
  commandLengthMax: 8192,
  allowedHostsMax: 200,
  retentionMinutesMax: 60,
} as const;

/**
 * Returns the known members of an EnvironmentConfig, checked. Unknown members are ignored. The name defaults to
 * "Environment".
 *
 * Errors: invalid_environment naming the member.
 */
export function checkEnvironmentConfig(json: JsonObject): JsonObject & { readonly name: string } {
  const limits = ENVIRONMENT_LIMITS;
  const name = optionalText(json, "name")?.trim() || "Environment";
  if (name.length > limits.nameMax) throw invalid("name", `must have at most ${limits.nameMax} characters`);
  const repositories = optionalList(json, "github_repos", limits.repositoriesMax)?.map(readRepository);
  const setupCommands = optionalList(json, "setup_commands", limits.setupCommandsMax)?.map((command) => {
    if (typeof command === "string" && command !== "" && command.length <= limits.commandLengthMax) return command;
    throw invalid("setup_commands", `must be commands of 1 to ${limits.commandLengthMax} characters`);
  });
  const secrets = optionalList(json, "secrets", 100)?.map((secret) => {
    if (isObject(secret) && typeof secret["name"] === "string" && secret["name"] !== "")
      return { name: secret["name"] };
    throw invalid("secrets", "must be a list of {name}");
  });
  const allowedHosts = optionalList(json, "allowed_hosts", limits.allowedHostsMax)?.map((host) => {
    if (typeof host === "string" && HOST_PATTERN.test(host)) return host;
    throw invalid("allowed_hosts", "must be hosts such as example.com, *.example.com or example.com:8443");
  });
  const retention = json["failure_session_retention_minutes"] ?? undefined;
  if (retention !== undefined && !isWholeBetween(retention, 1, limits.retentionMinutesMax))
    throw invalid(
      "failure_session_retention_minutes",
      `must be a whole number from 1 to ${limits.retentionMinutesMax}`,
    );
  const providers = json["providers"] ?? undefined;
  if (providers !== undefined && !isObject(providers)) throw invalid("providers", "must be an object");
  return omitUndefined({
    name,
    description: optionalText(json, "description"),
    docker_image: optionalText(json, "docker_image"),
    github_repos: repositories,
    setup_commands: setupCommands,
    providers,
    secrets,
    allowed_hosts: allowedHosts,
    failure_session_retention_minutes: retention,
  });
}

function optionalText(json: JsonObject, key: string): string | undefined {
  const value = json[key] ?? undefined;
  if (value === undefined || typeof value === "string") return value;
  throw invalid(key, "must be a string");
}

function optionalList(json: JsonObject, key: string, max: number): readonly unknown[] | undefined {
  const value = json[key] ?? undefined;
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.length <= max) return value;
  throw invalid(key, `must be a list of at most ${max} entries`);
}

/** Host patterns in the syntax of workers (`apps/worker/src/egress/host-patterns.ts`). */
const HOST_PATTERN =
  /^(?=.{1,261}$)(?:\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(?::(?:\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d{2}|655[0-2]\d|6553[0-5]|\*))?$/i;

const NAME_PART = /^[A-Za-z0-9._-]{1,200}$/;

function readRepository(value: unknown): RepositoryRef {
  if (isObject(value)) {
    const { owner, repo } = value;
    if (typeof owner === "string" && NAME_PART.test(owner) && typeof repo === "string" && NAME_PART.test(repo))
      return { owner, repo };
  }
  throw invalid("github_repos", "must be a list of {owner, repo}");
}

const isWholeBetween = (value: unknown, min: number, max: number): boolean =>
  typeof value === "number" && Number.isInteger(value) && value >= min && value <= max;

const invalid = (key: string, text: string): DomainError =>
  invalidArgument("invalid_environment", `config.${key} ${text}.`, { key });
