import { canAs, type Caller } from "@millwright/caller";
import type { Run } from "./run.ts";

/**
 * Returns whether the caller may view a run: `run.view` in the run's team, or for its user. A run token is further
 * restricted to the tree of its run and to the runs of its run's factory, whose tasks the run works on. `visibleRuns`
 * (run-store.ts) implements the same rule in SQL.
 */
export const canSee = (
  caller: Caller,
  { owner, rootRunUid, factoryUid }: Pick<Run, "owner" | "rootRunUid" | "factoryUid">,
): boolean =>
  canAs(caller, owner, "run.view") &&
  (!caller.run ||
    rootRunUid === caller.run.rootRunUid ||
    (factoryUid !== undefined && factoryUid === caller.run.factoryUid));
