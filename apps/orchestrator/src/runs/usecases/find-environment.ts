import { reachEnvironment, type EnvironmentGrantsDeps } from "../../catalog/usecases/environment-grants.ts";
import { ownersWith, type Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import type { Environment } from "../../catalog/domain/environment.ts";
import type { Owner } from "../domain/run.ts";

export type FindEnvironmentDeps = EnvironmentGrantsDeps;

/**
 * Returns the environment of a run that the caller creates for this owner. Errors: environment_not_found ·
 * environment_personal (invalid_argument).
 */
export async function findEnvironment(
  deps: FindEnvironmentDeps,
  caller: Caller,
  owner: Owner,
  uid: string | undefined,
): Promise<Environment | undefined> {
  if (uid === undefined) return undefined;
  const person = ownersWith(caller, "run.view").filter(({ type }) => type === "user");
  const grantees = [owner, ...person];
  const environment =
    (await deps.environments.find([owner], uid)) ?? (await deps.environments.findShared(grantees, uid));
  if (environment) return environment;
  const isPersonal = owner.type === "team" && (await deps.environments.find(person, uid)) !== undefined;
  if (isPersonal)
    throw invalidArgument(
      "environment_personal",
      "A run owned by a team cannot use a personal environment. Use an environment of the team.",
    );
  const reached = await reachEnvironment(deps, caller, grantees.at(-1) ?? owner, uid);
  if (!reached) throw notFound("environment");
  return reached;
}
