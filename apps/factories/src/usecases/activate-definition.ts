import { setTimeout as pause } from "node:timers/promises";
import { bestEffort, type WarnLog } from "@millwright/errors";
import type { AgentUid, FactoryUid } from "@millwright/ids";
import { ACTIVATE, DROP, type Activation } from "../domain/apply.ts";

export type ActivateDeps = {
  activation: {
    /** Rolls every owner forward to the version. Errors: when one of them could not. */
    activate(activation: Activation): Promise<void>;
    /** The agent that receives the factory's work now. */
    foremanOf(activation: Activation): Promise<AgentUid | undefined>;
    drop(activation: Activation): Promise<void>;
  };
  applies: {
    /** Notes that every owner serves the version, unless a newer one was committed since. */
    confirm(uid: FactoryUid, version: number, foreman: AgentUid | null): Promise<void>;
  };
  log: WarnLog;
  /** How long an apply waits for the owners. */
  activationWaitMs: number;
};

/** Makes a committed version serve everywhere. Repeating it changes nothing. */
export async function activateDefinition(deps: ActivateDeps, activation: Activation): Promise<void> {
  await deps.activation.activate(activation);
  const foreman = await deps.activation.foremanOf(activation);
  await deps.applies.confirm(activation.factory.uid, activation.version, foreman ?? null);
}

/** The same, promptly if it can be: an owner that is late or away is left to the durable work of the commit. */
export async function activateWithin(deps: ActivateDeps, activation: Activation): Promise<void> {
  const waiting = new AbortController();
  const activated = bestEffort("activate a definition", deps.log, () => activateDefinition(deps, activation));
  const late = pause(deps.activationWaitMs, undefined, { signal: waiting.signal }).catch(() => {});
  await Promise.race([activated, late]);
  waiting.abort();
}

/** Carries out what a commit or a failed apply left to be done at the owners; tried until they have answered. */
export const definitionWork = (deps: ActivateDeps) => ({
  [ACTIVATE]: ({ payload }: { payload: unknown }) => activateDefinition(deps, payload as Activation),
  [DROP]: ({ payload }: { payload: unknown }) => deps.activation.drop(payload as Activation),
});
