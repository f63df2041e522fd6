import { randomToken } from "@millwright/ids";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";

/** Prefix of offer tokens. One worker process takes over a dispatched execution with an offer token. */
export const OFFER_TOKEN_PREFIX = "mwo_";

const OFFER_TOKEN = /^mwo_([1-9]\d{0,15})_([1-9]\d{0,8})_[\w-]{20,}$/;

/**
 * Returns a new token for an attempt. The token contains the attempt, so that a process that receives nothing else
 * knows what to take over.
 */
export const newOfferToken = ({ executionId, attempt }: LeaseRef): string =>
  `${OFFER_TOKEN_PREFIX}${executionId}_${attempt}_${randomToken(32)}`;

/**
 * Returns the attempt that a token contains, or undefined if the text is no offer token. Does not check whether the
 * token is valid.
 */
export function leaseOfOfferToken(token: string): LeaseRef | undefined {
  const [, executionId, attempt] = OFFER_TOKEN.exec(token) ?? [];
  return executionId === undefined ? undefined : { executionId: Number(executionId), attempt: Number(attempt) };
}
