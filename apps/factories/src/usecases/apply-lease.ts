import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "@millwright/clock";
import type { FactoryUid } from "@millwright/ids";
import { applyInProgress } from "../domain/apply.ts";

export type LeaseDeps = {
  applies: {
    /** Takes the factory's apply lease for `seconds`, unless somebody holds it. */
    begin(uid: FactoryUid, token: string, seconds: number): Promise<boolean>;
    end(uid: FactoryUid, token: string): Promise<void>;
  };
  clock: Clock;
};

/** Longer than an apply can take: fetch and stages have deadlines of their own. */
const LEASE_SECONDS = 120;
const WAIT_MS = 30_000;
const LOOK_EVERY_MS = 100;

/**
 * Runs one apply of a factory at a time, on whichever replica; others wait up to 30 s for their turn. Whoever loses the lease
 * cannot commit any more: every write names the token.
 *
 * Errors: apply_in_progress (conflict, retryable).
 */
export async function underLease<T>(deps: LeaseDeps, uid: FactoryUid, apply: (token: string) => Promise<T>): Promise<T> {
  const token = randomUUID();
  const startedMs = deps.clock.monotonicMs();
  while (!(await deps.applies.begin(uid, token, LEASE_SECONDS))) {
    if (deps.clock.monotonicMs() - startedMs > WAIT_MS) throw applyInProgress();
    await pause(LOOK_EVERY_MS);
  }
  try {
    return await apply(token);
  } finally {
    await deps.applies.end(uid, token);
  }
}
