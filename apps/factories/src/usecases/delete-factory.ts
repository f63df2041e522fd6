import { requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import type { Factory } from "../domain/factory.ts";
import { factoryDeleted } from "../events/factory-events.ts";
import { originOf } from "../events/origin.ts";
import type { FactoryStore } from "../store/factory-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type DeleteFactoryDeps = ScopeDeps & {
  factories: ScopeDeps["factories"] & Pick<FactoryStore, "delete">;
  runs: ScopeDeps["runs"] & {
    /**
     * Makes the orchestrator reject new runs of the factory permanently. If the factory has live runs, this happens
     * only with `withLiveRuns`. Returns the number of live runs.
     */
    close(caller: Caller, factory: Factory, withLiveRuns: boolean): Promise<number>;
  };
  clock: Clock;
};

/**
 * Deletes a factory without live runs, or cancels its live runs. Owners delete its agents and definition when they
 * handle the event. The orchestrator closes the factory first, so that a concurrent dispatch is either counted or
 * rejected. After a crash in between, the delete can be repeated.
 * Errors: factory_not_found · not_authorized · factory_has_live_runs (conflict).
 */
export async function deleteFactory(
  deps: DeleteFactoryDeps,
  caller: Caller,
  uid: string,
  { cancelRuns }: { cancelRuns: boolean },
): Promise<void> {
  const factory = await findFactory(deps, caller, uid, "factory.manage");
  if (cancelRuns) requireVerb(caller, factory.teamUid, "run.manage", "factory");
  const live = await deps.runs.close(caller, factory, cancelRuns);
  if (live > 0 && !cancelRuns) {
    throw new DomainError({
      kind: "conflict",
      reason: "factory_has_live_runs",
      message: `The factory has ${live} active runs. Cancel them, wait for them, or delete with cancel_runs.`,
      metadata: { live_runs: String(live) },
    });
  }
  const now = deps.clock.now();
  const deleted = { ...factory, version: factory.version + 1, updatedAt: now };
  await deps.factories.delete(factory, factoryDeleted(deleted, originOf(caller)), now);
}
