import { actorOf, ownersWith, requireVerbAs, type Caller, type Owner } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { newEnvironmentUid } from "@millwright/ids";
import type { JsonObject } from "../domain/agent-config.ts";
import { checkEnvironmentConfig, type Environment } from "../domain/environment.ts";
import { findManageable, refuseRunTokens } from "./environment-access.ts";
import { reachEnvironment, type EnvironmentGrantsDeps } from "./environment-grants.ts";

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

export type EnvironmentsDeps = EnvironmentGrantsDeps & {
  readonly environmentUse: (caller: Caller, uids: readonly string[]) => Promise<ReadonlyMap<string, EnvironmentUse>>;
};

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
