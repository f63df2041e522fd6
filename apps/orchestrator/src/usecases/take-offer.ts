import { DomainError } from "@millwright/errors";
import { leaseOfOfferToken } from "../domain/offer-token.ts";
import type { LeaseRef, OfferedLease, WorkerRegistration } from "../domain/worker-session.ts";
import { checkRegistration, newSessionToken, type RegisterWorkerDeps, type WorkerKey } from "./register-worker.ts";

export type TakeOfferDeps = {
  openKey(sealed: string): string;
  authenticateKey(key: string): Promise<WorkerKey>;
  /** Undefined: lost, ended, told to end, or never opened to this token. */
  findOfferedLease(lease: LeaseRef, token: string): Promise<OfferedLease | undefined>;
  /** In one transaction that holds the run: finds the lease again; when `judge` lets it pass, the session is stored and the lease is its. */
  handOver(
    lease: LeaseRef,
    token: string,
    judge: (found: OfferedLease | undefined) => OfferedLease,
    sessionOf: (found: OfferedLease) => NewSession,
  ): Promise<void>;
};

export type NewSession = Parameters<RegisterWorkerDeps["putSession"]>[0];

/**
 * Registers a worker process by an offer token instead of a key: its session holds that one lease, gets no other work, and is
 * good for as long as the key of the worker that dispatched it. A token is taken by one process; the same one may register again
 * as long as it holds the lease.
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
  const instanceUid = `${lease.executionId}-${lease.attempt}/${registration.instanceUid}`; // never that of a worker which brought the key itself
  const judge = (found: OfferedLease | undefined): OfferedLease => {
    if (!found || (found.isTaken && found.holder !== instanceUid)) throw offerGone();
    return found;
  };
  const { dispatcher } = judge(await deps.findOfferedLease(lease, offerToken));
  await deps.authenticateKey(deps.openKey(dispatcher.sealedKey));
  const token = newSessionToken();
  await deps.handOver(lease, offerToken, judge, ({ dispatcher: { workerHost, ...from } }) => ({
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
    message: "This offer is not open: it was taken by another process, has ended, or was given up.",
  });
