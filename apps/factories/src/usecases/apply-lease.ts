import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "@millwright/clock";
import type { FactoryUid } from "@millwright/ids";
import { applyInProgress } from "../domain/apply.ts";
import type { ApplyStore } from "../store/apply-store.ts";

export type LeaseDeps = {
  applies: Pick<ApplyStore, "begin" | "renew" | "end">;
  clock: Clock;
};

/** The lease time. If the lease is not renewed within it, the apply is considered dead. */
const LEASE_SECONDS = 10;
const RENEW_EVERY_MS = 2_000;
const WAIT_MS = 30_000;
const RETRY_EVERY_MS = 100;

/**
 * Runs one apply of a factory at a time, across replicas. Other applies wait for up to 30 s, longer than the lease of a
 * dead process. An apply that loses the lease can no longer commit, because every write checks the token.
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
    await pause(RETRY_EVERY_MS);
  }
  let renewed: Promise<unknown> = Promise.resolve();
  // After a failed renewal, the next one extends the lease again. Every write checks the lease itself.
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
