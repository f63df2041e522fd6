import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { Origin } from "../events/origin.ts";
import { closeStage, findStage, lockActivation } from "../store/definition-store.ts";
import { projectScorers } from "./project-scorers.ts";
import { projectSuites } from "./project-suites.ts";

export type ActivateDefinitionDeps = {
  database: Pick<Database, "sql" | "transaction">;
  agents: {
    /** Uids of agents of a factory by name; absent and disabled ones have none. */
    uidsOf(factory: { uid: string; teamUid: string }, names: readonly string[]): Promise<ReadonlyMap<string, string>>;
  };
  clock: Clock;
};

/**
 * Rolls the scorers and suites of a factory's files forward to a staged version; an older one changes nothing. Each is the same as long as its
 * directory is there, whatever its name; without its files it is deleted as by the API. Agents are resolved by name, so their owner must serve
 * the version. Returns the version in force.
 *
 * Errors: stage_missing (conflict, retryable): the version was never staged here.
 */
export async function activateDefinition(
  deps: ActivateDefinitionDeps,
  origin: Origin,
  target: { factoryUid: string; version: number },
): Promise<number> {
  const { factoryUid, version } = target;
  const staged = await findStage(deps.database.sql, factoryUid, version);
  const names = new Set([
    ...(staged?.part.scorers ?? []).flatMap(({ agents }) => (agents === "*" ? [] : agents)),
    ...(staged?.part.suites ?? []).map(({ agent }) => agent),
  ]);
  const uids = staged
    ? await deps.agents.uidsOf({ uid: factoryUid, teamUid: staged.teamUid }, [...names])
    : new Map<string, string>();
  return deps.database.transaction(async (tx) => {
    const inForce = await lockActivation(tx, factoryUid);
    if (inForce >= version) return inForce;
    if (!staged)
      throw new DomainError({
        kind: "conflict",
        reason: "stage_missing",
        message: "This version of the definition was not staged.",
        retryable: true,
      });
    const now = deps.clock.now();
    await projectScorers(tx, staged, uids, origin, now);
    await projectSuites(tx, staged, uids, origin, now);
    await closeStage(tx, factoryUid, version);
    return version;
  });
}
