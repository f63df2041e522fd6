import type { Bound } from "../../storage/store/bind-store.ts";
import type { findOfferedLease } from "../store/dispatch-store.ts";
import type { InOfferTransaction } from "../store/offer-transaction.ts";
import { DomainError } from "@millwright/errors";
import { leaseOfOfferToken } from "../domain/offer-token.ts";
import type { OfferedLease, WorkerRegistration } from "../../runs/domain/worker-session.ts";
import { checkRegistration, newSessionToken, type WorkerKey } from "./register-worker.ts";

export type TakeOfferDeps = {
  openKey(sealed: string): string;
  authenticateKey(key: string): Promise<WorkerKey>;
  readonly findOfferedLease: Bound<typeof findOfferedLease>;
  readonly offers: InOfferTransaction;
};

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
  await deps.offers(async (tx) => {
    const found = requireOpen(await tx.findOfferedLease(lease, offerToken));
    const { workerHost, ...from } = found.dispatcher;
    const session = await tx.putSession({
      token,
      ...from,
      registration: { ...registration, workerHost, instanceUid, backend: "machine", slots: 0, skills: [] },
    });
    if (!found.isTaken) await tx.transferLease(lease, session);
  });
  return token;
}

const offerGone = (): DomainError =>
  new DomainError({
    kind: "unauthenticated",
    reason: "offer_gone",
    message: "This offer is no longer open: another process accepted it, or it expired or was withdrawn.",
  });
