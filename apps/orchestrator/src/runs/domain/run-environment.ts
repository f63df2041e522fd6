import { isObject, type JsonObject } from "../../catalog/domain/agent-config.ts";
import type { ResolvedConfig } from "../../catalog/domain/config-resolution.ts";
import type { Environment } from "../../catalog/domain/environment.ts";
import type { Owner } from "./run.ts";

/**
 * Returns the secrets of the configuration and the environment. The secret that authenticates a harness is not among
 * them: only the worker receives it.
 */
export function secretsOf(config: ResolvedConfig, environment: Environment | undefined): readonly string[] {
  const ofEnvironment = listOf(environment, "secrets").map((secret) =>
    isObject(secret) ? String(secret["name"]) : "",
  );
  return [...new Set([...config.secrets, ...ofEnvironment])].filter(Boolean);
}

/**
 * Returns whether the environment belongs to the owner of the run. The environment of another owner must not request
 * the secrets of the run's owner: its commands could exfiltrate them.
 */
export const isOwn = (environment: Environment | undefined, owner: Owner): boolean =>
  environment?.owner.type === owner.type && environment.owner.uid === owner.uid;

export const configOf = (environment: Environment | undefined): JsonObject => environment?.config ?? {};
export const listOf = (environment: Environment | undefined, key: string): readonly unknown[] =>
  (configOf(environment)[key] as unknown[] | undefined) ?? [];
export const textOf = (environment: Environment | undefined, key: string): string =>
  (configOf(environment)[key] as string | undefined) ?? "";
