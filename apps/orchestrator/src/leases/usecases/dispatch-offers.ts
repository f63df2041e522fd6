import type { Job } from "../../runs/domain/assignment.ts";
import { newOfferToken } from "../domain/offer-token.ts";
import type { LeaseRef, WorkerSession } from "../../runs/domain/worker-session.ts";
import { claimOffers, type ClaimOffersDeps } from "./claim-offers.ts";

/**
 * An execution that a worker has accepted for another machine, with its job and the token with which one worker process
 * on that machine takes the execution over.
 */
export type Dispatch = LeaseRef & { readonly job: Job; readonly offerToken: string };

/**
 * Accepts offers as `acceptOffers` does, but for another machine: prompts and secrets are sent only to the worker
 * process there that presents the token. A repeated call returns new tokens and invalidates the earlier ones.
 *
 * Errors: unavailable if an upstream service cannot be reached; the offers stay open.
 */
export async function dispatchOffers(
  deps: ClaimOffersDeps,
  session: WorkerSession,
  offers: readonly LeaseRef[],
): Promise<{ readonly dispatches: readonly Dispatch[]; readonly lost: readonly LeaseRef[] }> {
  const tokens = new Map(offers.map((offer) => [offer, newOfferToken(offer)]));
  const { items, claims } = await claimOffers(deps, session, offers, (tx, offer) =>
    tx.storeOfferToken(session.uid, offer, tokens.get(offer)!),
  );
  const dispatches = items.flatMap(({ offer, job }) =>
    claims.has(offer) ? [{ ...offer, job, offerToken: tokens.get(offer)! }] : [],
  );
  return { dispatches, lost: offers.filter((offer) => !claims.has(offer)) };
}
