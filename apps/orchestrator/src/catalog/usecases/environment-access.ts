import { actorOf, requireVerbAs, type Caller, type Owner } from "@millwright/caller";
import { DomainError, notFound } from "@millwright/errors";
import type { Environment } from "../domain/environment.ts";
import type { EnvironmentStore } from "../store/environment-store.ts";

type EnvironmentAccessDeps = { readonly environments: EnvironmentStore };

/**
 * Returns every owner that the credential reaches, regardless of its rights. An operation on an environment of the
 * caller's own team must be refused as not_authorized, not hidden as not found.
 */
const reachable = (caller: Caller): Owner[] => [
  ...caller.teams.map(({ teamUid: uid }): Owner => ({ type: "team", uid })),
  ...(caller.personal ? [{ type: "user", uid: actorOf(caller).uid } as const] : []),
];

/**
 * Returns an environment that the caller owns and may manage. Grants and links permit only its use.
 *
 * Errors: environment_not_found · not_authorized (also for run tokens).
 */
export async function findManageable(deps: EnvironmentAccessDeps, caller: Caller, uid: string): Promise<Environment> {
  const environment = await deps.environments.find(reachable(caller), uid);
  if (!environment) throw notFound("environment");
  // The right to manage an owner's runs includes the environments in which they run.
  requireVerbAs(caller, environment.owner, "run.manage", "environment");
  refuseRunTokens(caller);
  return environment;
}

/**
 * An environment determines which hosts and secrets later runs can access, so an agent must not change it with its run
 * token.
 */
export function refuseRunTokens(caller: Caller): void {
  if (!caller.run) return;
  throw new DomainError({
    kind: "permission_denied",
    reason: "not_authorized",
    message: "Run tokens cannot manage environments. Use an API key with the permission run.manage.",
  });
}
