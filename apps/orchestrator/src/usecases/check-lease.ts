import { DomainError } from "@millwright/errors";
import type { RunRef } from "../domain/run-token.ts";
import type { LeaseRef } from "../domain/worker-session.ts";

/**
 * Whom a run token acts for. Asked on every request that carries one, so that fencing an attempt off ends everything it may do.
 *
 * Errors: lease_lost (unauthenticated).
 */
export async function checkLease(
  deps: { findLiveLease(lease: LeaseRef): Promise<RunRef | undefined> },
  lease: LeaseRef,
): Promise<RunRef> {
  const run = await deps.findLiveLease(lease);
  if (!run)
    throw new DomainError({
      kind: "unauthenticated",
      reason: "lease_lost",
      message: "The attempt of this run token no longer holds its lease.",
    });
  return run;
}
