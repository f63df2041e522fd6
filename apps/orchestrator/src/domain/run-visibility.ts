import { canAs, type Caller } from "@millwright/caller";
import type { Run } from "./run.ts";

/**
 * Whether the caller may see a run: `run.view` for its owner, team or person. A run token is bound to the tree of its run and to the runs of
 * its run's factory, whose tasks it works on. `visibleRuns` (run-store.ts) states the same rule in SQL.
 */
export const canSee = (
  caller: Caller,
  { owner, rootRunUid, factoryUid }: Pick<Run, "owner" | "rootRunUid" | "factoryUid">,
): boolean =>
  canAs(caller, owner, "run.view") &&
  (!caller.run ||
    rootRunUid === caller.run.rootRunUid ||
    (factoryUid !== undefined && factoryUid === caller.run.factoryUid));
