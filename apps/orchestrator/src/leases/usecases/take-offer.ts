import { DomainError } from "@millwright/errors";
import { leaseOfOfferToken } from "../domain/offer-token.ts";
import type { LeaseRef, OfferedLease, WorkerRegistration } from "../../runs/domain/worker-session.ts";
import { checkRegistration, newSessionToken, type RegisterWorkerDeps, type WorkerKey } from "./register-worker.ts";

export type TakeOfferDeps = {
  openKey(sealed: string): string;
  authenticateKey(key: string): Promise<WorkerKey>;
  /** Returns a lease; undefined if it is lost, has ended, is being stopped, or was never opened to this token. */
  findOfferedLease(lease: LeaseRef, token: string): Promise<OfferedLease | undefined>;
  /**
   * Locks the run and finds the lease again, in one transaction. If `requireOpen` does not throw, stores the session
   * and transfers the lease to it.
   */
  takeOverLease(
    lease: LeaseRef,
    token: string,
    requireOpen: (found: OfferedLease | undefined) => OfferedLease,
    sessionOf: (found: OfferedLease) => NewSession,
  ): Promise<void>;
};

export type NewSession = Parameters<RegisterWorkerDeps["putSession"]>[0];

/**
 * Registers a worker process with an offer token instead of a key. Its session owns that one lease, receives no other
 * work, and is valid as long as the key of the worker that dispatched it. Only one process can use a token. That
 * process may register again while it owns the lease.
 *
 * Errors: offer_gone (unauthenticated) · key_invalid (unauthenticated) · worker_too_old · worker_invalid.
 */
export async function takeOffer(
  deps: TakeOfferDeps,
  offerToken: string,
  registration: WorkerRegistration,
): Promise<string> {
  checkRegistration(registration);
  const lease = leaseOfOfferToken(offerToken);
  if (!lease) throw offerGone();
  // Never the instance uid of a worker that registers with a key.
  const instanceUid = `${lease.executionId}-${lease.attempt}/${registration.instanceUid}`;
  const requireOpen = (found: OfferedLease | undefined): OfferedLease => {
    if (!found || (found.isTaken && found.owner !== instanceUid)) throw offerGone();
    return found;
  };
  const { dispatcher } = requireOpen(await deps.findOfferedLease(lease, offerToken));
  await deps.authenticateKey(deps.openKey(dispatcher.sealedKey));
  const token = newSessionToken();
  await deps.takeOverLease(lease, offerToken, requireOpen, ({ dispatcher: { workerHost, ...from } }) => ({
    token,
    ...from,
    registration: { ...registration, workerHost, instanceUid, backend: "machine", slots: 0, skills: [] },
  }));
  return token;
}

const offerGone = (): DomainError =>
  new DomainError({
    kind: "unauthenticated",
    reason: "offer_gone",
    message: "This offer is no longer open: another process accepted it, or it expired or was withdrawn.",
  });
