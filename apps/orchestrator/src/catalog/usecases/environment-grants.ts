import { actorOf, isMember, type Caller, type Owner } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import { isUuid, newUid } from "@millwright/ids";
import type { Environment, EnvironmentGrant } from "../domain/environment.ts";
import type { EnvironmentStore } from "../store/environment-store.ts";
import { findManageable } from "./environment-access.ts";

export type EnvironmentGrantsDeps = { readonly environments: EnvironmentStore; readonly clock: Clock };

/**
 * Grants the use of an environment to a team that the caller is a member of, or to a user; the calling service has
 * checked that the user exists. A repeated call returns the same grant.
 *
 * Errors: environment_not_found · not_authorized · team_not_found · user_not_found.
 */
export async function grantEnvironment(
  deps: EnvironmentGrantsDeps,
  caller: Caller,
  uid: string,
  grantee: Owner,
): Promise<EnvironmentGrant> {
  const environment = await findManageable(deps, caller, uid);
  if (!isUuid(grantee.uid) || (grantee.type === "team" && !isMember(caller, grantee.uid))) throw notFound(grantee.type);
  return deps.environments.grant(environment.uid, newGrant(deps, caller, grantee));
}

/** Returns the grants of an environment, oldest first. Errors: environment_not_found · not_authorized. */
export async function listEnvironmentGrants(
  deps: EnvironmentGrantsDeps,
  caller: Caller,
  uid: string,
): Promise<EnvironmentGrant[]> {
  return deps.environments.grants((await findManageable(deps, caller, uid)).uid);
}

/**
 * Revokes a grant. Existing runs continue. Errors: environment_not_found · not_authorized ·
 * environment_grant_not_found.
 */
export async function revokeEnvironmentGrant(
  deps: EnvironmentGrantsDeps,
  caller: Caller,
  uid: string,
  grantUid: string,
): Promise<void> {
  const environment = await findManageable(deps, caller, uid);
  if (!isUuid(grantUid) || !(await deps.environments.revoke(environment.uid, grantUid)))
    throw notFound("environment_grant");
}

/** Returns an environment if link sharing is on, and adds it to the list of `grantee`. */
export async function reachEnvironment(
  deps: EnvironmentGrantsDeps,
  caller: Caller,
  grantee: Owner,
  uid: string,
): Promise<Environment | undefined> {
  const linked = await deps.environments.findLinked(uid);
  if (linked) await deps.environments.reach(linked.uid, newGrant(deps, caller, grantee));
  return linked;
}

const newGrant = (
  { clock }: Pick<EnvironmentGrantsDeps, "clock">,
  caller: Caller,
  grantee: Owner,
): EnvironmentGrant => ({
  uid: newUid(),
  grantee,
  creatorUid: actorOf(caller).uid,
  createdAt: clock.now(),
});
