import { actorOf, isMember, ownersWith, requireVerbAs, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError, notFound } from "@millwright/errors";
import { isUuid, newEnvironmentUid, newUid } from "@millwright/ids";
import type { JsonObject } from "../domain/agent-config.ts";
import { checkEnvironmentConfig, type Environment, type EnvironmentGrant } from "../domain/environment.ts";
import type { Owner } from "@millwright/caller";
import type { EnvironmentStore } from "../store/environment-store.ts";

/** The newest run in an environment, of the runs that the caller may see. */
export type EnvironmentUse = {
  readonly runUid: string;
  readonly title: string;
  /** A state of a run. */
  readonly state: string;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt?: Date;
  readonly hasFailedSetup: boolean;
};
/** An environment and the newest run in it, if there is one. */
export type EnvironmentView = { readonly environment: Environment; readonly lastUse?: EnvironmentUse };

export type EnvironmentsDeps = {
  readonly environments: EnvironmentStore;
  readonly environmentUse: (caller: Caller, uids: readonly string[]) => Promise<ReadonlyMap<string, EnvironmentUse>>;
  readonly clock: Clock;
};

/**
 * Returns every owner that the credential reaches, regardless of its rights. An operation on an environment of the
 * caller's own team must be refused as not_authorized, not hidden as not found.
 */
const reachable = (caller: Caller): Owner[] => [
  ...caller.teams.map(({ teamUid: uid }): Owner => ({ type: "team", uid })),
  ...(caller.personal ? [{ type: "user", uid: actorOf(caller).uid } as const] : []),
];

/**
 * Returns the environments of the caller's teams, the caller's own, those granted to them, and those reached by their
 * links. With `teamUid`, only those of that team; none if the caller is not a member.
 */
export async function listEnvironments(
  deps: EnvironmentsDeps,
  caller: Caller,
  teamUid: string | undefined,
  sort: "last_updated" | "name",
): Promise<EnvironmentView[]> {
  return withUse(deps, caller, await environmentsInView(deps, caller, teamUid, sort));
}

/** Returns the same environments without the runs in them. */
export async function environmentsInView(
  { environments }: Pick<EnvironmentsDeps, "environments">,
  caller: Caller,
  teamUid: string | undefined,
  sort: "last_updated" | "name",
): Promise<Environment[]> {
  const owners = ownersWith(caller, "run.view", teamUid).filter(
    ({ type, uid }) => type === "user" || caller.activeTeamUid === undefined || uid === caller.activeTeamUid,
  );
  return environments.list(owners, sort);
}

/**
 * Returns an environment that the caller may use. If a person reads an environment by its link, it is in that person's
 * list from then on. A read by a credential without personal rights adds it to no list, in particular not to the list
 * of a whole team.
 *
 * Errors: environment_not_found.
 */
export async function getEnvironment(deps: EnvironmentsDeps, caller: Caller, uid: string): Promise<EnvironmentView> {
  const own = ownersWith(caller, "run.view");
  const { environments } = deps;
  const environment =
    (await environments.find(own, uid)) ??
    (await environments.findShared(own, uid)) ??
    (await readByLink(deps, caller, own, uid));
  if (!environment) throw notFound("environment");
  return viewOf(deps, caller, environment);
}

async function readByLink(
  deps: EnvironmentsDeps,
  caller: Caller,
  own: readonly Owner[],
  uid: string,
): Promise<Environment | undefined> {
  if (own.length === 0) return undefined;
  const person = own.find(({ type }) => type === "user");
  return person ? reachEnvironment(deps, caller, person, uid) : deps.environments.findLinked(uid);
}

/** Returns an environment if link sharing is on, and adds it to the list of `grantee`. */
export async function reachEnvironment(
  deps: Pick<EnvironmentsDeps, "environments" | "clock">,
  caller: Caller,
  grantee: Owner,
  uid: string,
): Promise<Environment | undefined> {
  const linked = await deps.environments.findLinked(uid);
  if (linked) await deps.environments.reach(linked.uid, newGrant(deps, caller, grantee));
  return linked;
}

/**
 * Creates an environment that a team or the caller owns, once per key. Errors: team_not_found · not_authorized (also
 * for run tokens) · invalid_environment · idempotency_mismatch (conflict).
 */
export async function createEnvironment(
  deps: EnvironmentsDeps,
  caller: Caller,
  owner: Owner,
  requested: { readonly config: JsonObject; readonly linkSharing?: boolean | undefined },
  key = "",
): Promise<EnvironmentView> {
  requireVerbAs(caller, owner, "run.manage", owner.type);
  refuseRunTokens(caller);
  const uid = actorOf(caller).uid;
  const { linkSharing = false } = requested;
  const who = { creatorUid: uid, lastEditorUid: uid, updatedAt: deps.clock.now() };
  const environment: Environment = {
    ...who,
    uid: newEnvironmentUid(),
    owner,
    config: checkEnvironmentConfig(requested.config),
    linkSharing,
    access: "owned",
  };
  return {
    environment: await deps.environments.insert(environment, {
      principalUid: uid,
      operation: "environment",
      key,
      body: [owner, requested.config, ...(linkSharing ? [linkSharing] : [])],
    }),
  };
}

/**
 * Replaces the configuration. Existing runs are unaffected. Link sharing is unchanged if absent. Errors:
 * environment_not_found · not_authorized · invalid_environment.
 */
export async function replaceEnvironment(
  deps: EnvironmentsDeps,
  caller: Caller,
  uid: string,
  { config, linkSharing }: { readonly config: JsonObject; readonly linkSharing?: boolean | undefined },
): Promise<EnvironmentView> {
  const { uid: found } = await findManageable(deps, caller, uid);
  const change = {
    config: checkEnvironmentConfig(config),
    linkSharing,
    lastEditorUid: actorOf(caller).uid,
    updatedAt: deps.clock.now(),
  };
  const environment = await deps.environments.replace(found, change);
  if (!environment) throw notFound("environment");
  return viewOf(deps, caller, environment);
}

/** Deletes an environment. Existing runs are unaffected. Errors: environment_not_found · not_authorized. */
export async function deleteEnvironment(deps: EnvironmentsDeps, caller: Caller, uid: string): Promise<void> {
  await deps.environments.delete((await findManageable(deps, caller, uid)).uid);
}

/**
 * Grants the use of an environment to a team that the caller is a member of, or to a user; the calling service has
 * checked that the user exists. A repeated call returns the same grant.
 *
 * Errors: environment_not_found · not_authorized · team_not_found · user_not_found.
 */
export async function grantEnvironment(
  deps: EnvironmentsDeps,
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
  deps: EnvironmentsDeps,
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
  deps: EnvironmentsDeps,
  caller: Caller,
  uid: string,
  grantUid: string,
): Promise<void> {
  const environment = await findManageable(deps, caller, uid);
  if (!isUuid(grantUid) || !(await deps.environments.revoke(environment.uid, grantUid)))
    throw notFound("environment_grant");
}

const newGrant = ({ clock }: Pick<EnvironmentsDeps, "clock">, caller: Caller, grantee: Owner): EnvironmentGrant => ({
  uid: newUid(),
  grantee,
  creatorUid: actorOf(caller).uid,
  createdAt: clock.now(),
});

/**
 * Returns an environment that the caller owns and may manage. Grants and links permit only its use.
 *
 * Errors: environment_not_found · not_authorized (also for run tokens).
 */
async function findManageable(deps: EnvironmentsDeps, caller: Caller, uid: string): Promise<Environment> {
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
function refuseRunTokens(caller: Caller): void {
  if (!caller.run) return;
  throw new DomainError({
    kind: "permission_denied",
    reason: "not_authorized",
    message: "Run tokens cannot manage environments. Use an API key with the permission run.manage.",
  });
}

async function viewOf(deps: EnvironmentsDeps, caller: Caller, environment: Environment): Promise<EnvironmentView> {
  const [view] = await withUse(deps, caller, [environment]);
  return view ?? { environment };
}

async function withUse(
  deps: EnvironmentsDeps,
  caller: Caller,
  environments: readonly Environment[],
): Promise<EnvironmentView[]> {
  const uses = await deps.environmentUse(
    caller,
    environments.map(({ uid }) => uid),
  );
  return environments.map((environment) => {
    const lastUse = uses.get(environment.uid);
    return { environment, lastUse };
  });
}
