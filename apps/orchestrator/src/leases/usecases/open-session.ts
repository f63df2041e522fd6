import { OFFER_TOKEN_PREFIX } from "../domain/offer-token.ts";
import type { WorkerRegistration } from "../../runs/domain/worker-session.ts";
import { registerWorker, type RegisterWorkerDeps } from "./register-worker.ts";
import { takeOffer, type TakeOfferDeps } from "./take-offer.ts";

export type OpenSessionDeps = RegisterWorkerDeps & TakeOfferDeps;

/**
 * Opens a session for a worker process that presents a worker key, or the offer token of one execution. Returns the
 * token of the session. Errors: those of `registerWorker` and `takeOffer`.
 */
export const openSession = (
  deps: OpenSessionDeps,
  credential: string,
  registration: WorkerRegistration,
): Promise<string> =>
  credential.startsWith(OFFER_TOKEN_PREFIX)
    ? takeOffer(deps, credential, registration)
    : registerWorker(deps, credential, registration);
