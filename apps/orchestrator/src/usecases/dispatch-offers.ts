import type { Job } from "../domain/assignment.ts";
import { newOfferToken } from "../domain/offer-token.ts";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";
import { claimOffers, type AcceptOffersDeps } from "./accept-offers.ts";

/** An execution that a worker has taken for another machine: what it needs, and the token by which one worker process there takes it over. */
export type Dispatch = LeaseRef & { readonly job: Job; readonly offerToken: string };

/**
 * Takes offers as `acceptOffers` does, but for another machine: what an agent is asked, and every secret, goes only to the
 * worker process there that brings the token. Repeated, it answers new tokens, and the earlier ones are dead.
 *
 * Errors: unavailable when an upstream service cannot be asked; the offers stay open.
 */
export async function dispatchOffers(
  deps: Pick<AcceptOffersDeps, "runs" | "findJob" | "prepareAssignment">,
  session: WorkerSession,
  offers: readonly LeaseRef[],
): Promise<{ readonly dispatches: readonly Dispatch[]; readonly lost: readonly LeaseRef[] }> {
  const tokens = new Map(offers.map((offer) => [offer, newOfferToken(offer)]));
  const { items, claims } = await claimOffers(deps, session, offers, (tx, offer) =>
    tx.openToOffer(session.uid, offer, tokens.get(offer)!),
  );
  const dispatches = items.flatMap(({ offer, job }) =>
    claims.has(offer) ? [{ ...offer, job, offerToken: tokens.get(offer)! }] : [],
  );
  return { dispatches, lost: offers.filter((offer) => !claims.has(offer)) };
}
