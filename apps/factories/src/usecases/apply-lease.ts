import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "@millwright/clock";
import type { FactoryUid } from "@millwright/ids";
import { applyInProgress } from "../domain/apply.ts";

export type LeaseDeps = {
  applies: {
    /** Takes the factory's apply lease for `seconds`, unless somebody holds it. */
    begin(uid: FactoryUid, token: string, seconds: number): Promise<boolean>;
    /** Has it for `seconds` from now, if nobody has taken it since. */
    renew(uid: FactoryUid, token: string, seconds: number): Promise<void>;
    end(uid: FactoryUid, token: string): Promise<void>;
  };
  clock: Clock;
};

/** After so long without renewal the process of an apply counts as dead. */
const LEASE_SECONDS = 10;
const RENEW_EVERY_MS = 2_000;
const WAIT_MS = 30_000;
const LOOK_EVERY_MS = 100;

/**
 * Runs one apply of a factory at a time, on whichever replica; others wait up to 30 s for their turn, longer than an apply is
 * missed whose process has died. Whoever loses the lease cannot commit any more: every write names the token.
 *
 * Errors: apply_in_progress (conflict, retryable).
 */
export async function underLease<T>(
  deps: LeaseDeps,
  uid: FactoryUid,
  apply: (token: string) => Promise<T>,
  renewEveryMs = RENEW_EVERY_MS,
): Promise<T> {
  const token = randomUUID();
  const startedMs = deps.clock.monotonicMs();
  while (!(await deps.applies.begin(uid, token, LEASE_SECONDS))) {
    if (deps.clock.monotonicMs() - startedMs > WAIT_MS) throw applyInProgress();
    await pause(LOOK_EVERY_MS);
  }
  let renewed: Promise<unknown> = Promise.resolve();
  // One that fails is made up for by the next; whether the lease is still held, every write finds out.
  const renewing = setInterval(
    () => void (renewed = renewed.then(() => deps.applies.renew(uid, token, LEASE_SECONDS)).catch(() => {})),
    renewEveryMs,
  );
  try {
    return await apply(token);
  } finally {
    clearInterval(renewing);
    await renewed;
    await deps.applies.end(uid, token);
  }
}
