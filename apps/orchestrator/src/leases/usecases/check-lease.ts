import { DomainError } from "@millwright/errors";
import type { RunRef } from "../../runs/domain/run-token.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";

export type CheckLeaseDeps = { findLiveLease(lease: LeaseRef): Promise<RunRef | undefined> };

/**
 * Returns the run on whose behalf a run token acts. Called for every request with a run token, so that a fenced attempt
 * loses all its permissions at once.
 *
 * Errors: lease_lost (unauthenticated).
 */
export async function checkLease(deps: CheckLeaseDeps, lease: LeaseRef): Promise<RunRef> {
  const run = await deps.findLiveLease(lease);
  if (!run)
    throw new DomainError({
      kind: "unauthenticated",
      reason: "lease_lost",
      message: "The attempt of this run token no longer has the lease of its run. Stop it.",
    });
  return run;
}
