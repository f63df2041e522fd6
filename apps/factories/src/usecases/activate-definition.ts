import { setTimeout as pause } from "node:timers/promises";
import { bestEffort, type WarnLog } from "@millwright/errors";
import type { AgentUid } from "@millwright/ids";
import { ACTIVATE, DROP, type Activation } from "../domain/apply.ts";
import type { ApplyStore } from "../store/apply-store.ts";

export type ActivateDeps = {
  activation: {
    /** Rolls every owner forward to the version. Throws if any of them fails. */
    activate(activation: Activation): Promise<void>;
    /** Returns the current foreman. */
    foremanOf(activation: Activation): Promise<AgentUid | undefined>;
    drop(activation: Activation): Promise<void>;
  };
  applies: Pick<ApplyStore, "confirm">;
  log: WarnLog;
  /** How long an apply waits for the owners. */
  activationWaitMs: number;
};

/** Activates a committed version at every owner. Idempotent. */
export async function activateDefinition(deps: ActivateDeps, activation: Activation): Promise<void> {
  await deps.activation.activate(activation);
  const foreman = await deps.activation.foremanOf(activation);
  await deps.applies.confirm(activation.factory.uid, activation.version, foreman ?? null);
}

/**
 * Activates the version if the owners respond in time. Otherwise the durable work of the commit completes the
 * activation.
 */
export async function activateWithin(deps: ActivateDeps, activation: Activation): Promise<void> {
  const waiting = new AbortController();
  const activated = bestEffort("activate a definition", deps.log, () => activateDefinition(deps, activation));
  const late = pause(deps.activationWaitMs, undefined, { signal: waiting.signal }).catch(() => {});
  await Promise.race([activated, late]);
  waiting.abort();
}

/**
 * Handles the durable work of commits and failed applies at the owners. It is retried until all owners have responded.
 */
export const definitionWork = (deps: ActivateDeps) => ({
  [ACTIVATE]: ({ payload }: { payload: unknown }) => activateDefinition(deps, payload as Activation),
  [DROP]: ({ payload }: { payload: unknown }) => deps.activation.drop(payload as Activation),
});
