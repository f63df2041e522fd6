import { actorOf, requireVerb, teamsInView, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import { newEnvironmentUid, type EnvironmentUid } from "@millwright/ids";
import type { JsonObject } from "../domain/agent-config.ts";
import { checkEnvironmentConfig, type Environment } from "../domain/environment.ts";
import type { OnceRequest } from "../domain/run-transaction.ts";
import type { Owner } from "../domain/run.ts";

export type EnvironmentUse = { readonly at: Date; readonly hasFailedSetup: boolean };
/** An environment and the newest run in it, if there was one. */
export type EnvironmentView = { readonly environment: Environment; readonly lastUse?: EnvironmentUse };

export type EnvironmentsDeps = {
  readonly environments: {
    list(owners: readonly Owner[], sort: "last_updated" | "name"): Promise<Environment[]>;
    find(owners: readonly Owner[], uid: string): Promise<Environment | undefined>;
    insert(environment: Environment, request: OnceRequest): Promise<Environment>;
    replace(uid: EnvironmentUid, change: Pick<Environment, "config" | "lastEditorUid" | "updatedAt">): Promise<Environment | undefined>;
    delete(uid: EnvironmentUid): Promise<void>;
  };
  readonly environmentUse: (uids: readonly string[]) => Promise<ReadonlyMap<string, EnvironmentUse>>;
  readonly clock: Clock;
};

/** Personal environments belong to users; a service account has none. */
const personal = (caller: Caller): Owner[] => (actorOf(caller).type === "user" ? [{ type: "user", uid: actorOf(caller).uid }] : []);

/** The caller's teams' environments and its own; with a team named, only that team's (none, for a team it is not in). */
export async function listEnvironments(deps: EnvironmentsDeps, caller: Caller, teamUid: string | undefined, sort: "last_updated" | "name"): Promise<EnvironmentView[]> {
  return withUse(deps, await environmentsInView(deps, caller, teamUid, sort));
}

/** The same without their use. */
export async function environmentsInView({ environments }: Pick<EnvironmentsDeps, "environments">, caller: Caller, teamUid: string | undefined, sort: "last_updated" | "name"): Promise<Environment[]> {
  const teams = teamsInView(caller, "run.view").filter((team) => teamUid === undefined || team === teamUid);
  return environments.list([...teams.map((uid): Owner => ({ type: "team", uid })), ...(teamUid === undefined ? personal(caller) : [])], sort);
}

/**
 * Creates an environment of a team or of the caller itself, once per key. Errors: team_not_found · not_authorized · invalid_environment ·
 * idempotency_mismatch (conflict).
 */
export async function createEnvironment(deps: EnvironmentsDeps, caller: Caller, owner: Owner, config: JsonObject, key = ""): Promise<EnvironmentView> {
  requireOwner(caller, owner, "team");
  const uid = actorOf(caller).uid;
  const environment = { uid: newEnvironmentUid(), owner, config: checkEnvironmentConfig(config), creatorUid: uid, lastEditorUid: uid, updatedAt: deps.clock.now() };
  return { environment: await deps.environments.insert(environment, { principalUid: uid, operation: "environment", key, body: [owner, config] }) };
}

/** Replaces the configuration; runs that exist keep theirs. Errors: environment_not_found · not_authorized · invalid_environment. */
export async function replaceEnvironment(deps: EnvironmentsDeps, caller: Caller, uid: string, config: JsonObject): Promise<EnvironmentView> {
  const { uid: found } = await findManageable(deps, caller, uid);
  const change = { config: checkEnvironmentConfig(config), lastEditorUid: actorOf(caller).uid, updatedAt: deps.clock.now() };
  const environment = await deps.environments.replace(found, change);
  if (!environment) throw notFound("environment");
  const [view] = await withUse(deps, [environment]);
  return view ?? { environment };
}

/** Runs that exist keep what they were created with. Errors: environment_not_found · not_authorized. */
export async function deleteEnvironment(deps: EnvironmentsDeps, caller: Caller, uid: string): Promise<void> {
  await deps.environments.delete((await findManageable(deps, caller, uid)).uid);
}

async function findManageable(deps: EnvironmentsDeps, caller: Caller, uid: string): Promise<Environment> {
  const owners: Owner[] = [...caller.teams.map(({ teamUid }): Owner => ({ type: "team", uid: teamUid })), ...personal(caller)];
  const environment = await deps.environments.find(owners, uid);
  if (!environment) throw notFound("environment");
  requireOwner(caller, environment.owner, "environment");
  return environment;
}

/** Whoever may manage a team's runs may say where they run. */
function requireOwner(caller: Caller, owner: Owner, thing: string): void {
  if (owner.type === "team") return requireVerb(caller, owner.uid, "run.manage", thing);
  if (!personal(caller).some(({ uid }) => uid === owner.uid)) throw notFound(thing);
}

async function withUse(deps: EnvironmentsDeps, environments: readonly Environment[]): Promise<EnvironmentView[]> {
  const uses = await deps.environmentUse(environments.map(({ uid }) => uid));
  return environments.map((environment) => {
    const lastUse = uses.get(environment.uid);
    return { environment, ...(lastUse ? { lastUse } : {}) };
  });
}
