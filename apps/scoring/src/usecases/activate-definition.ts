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
    /** Returns the uids of a factory's agents by name, without absent and disabled agents. */
    uidsOf(factory: { uid: string; teamUid: string }, names: readonly string[]): Promise<ReadonlyMap<string, string>>;
  };
  clock: Clock;
};

/**
 * Updates the scorers and suites of a factory's files to a staged version; an older version changes nothing. A scorer
 * or suite is identified by its directory, not by its name. Without its files it is deleted in the same way as through
 * the API. Agents are resolved by name, so identity must have activated the version before. Returns the active version.
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
        message: "This version of the definition is not staged. Stage it, then activate it.",
        retryable: true,
      });
    const now = deps.clock.now();
    await projectScorers(tx, staged, uids, origin, now);
    await projectSuites(tx, staged, uids, origin, now);
    await closeStage(tx, factoryUid, version);
    return version;
  });
}
