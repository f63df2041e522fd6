import { randomToken } from "@millwright/ids";
import type { LeaseRef } from "./worker-session.ts";

/** How tokens begin by which one worker process takes a dispatched execution over. */
export const OFFER_TOKEN_PREFIX = "mwo_";

const OFFER_TOKEN = /^mwo_([1-9]\d{0,15})_([1-9]\d{0,8})_[\w-]{20,}$/;

/** A new token for an attempt, which it names, so that who is given nothing else knows what to take. */
export const newOfferToken = ({ executionId, attempt }: LeaseRef): string =>
  `${OFFER_TOKEN_PREFIX}${executionId}_${attempt}_${randomToken(32)}`;

/** The attempt that a token names; undefined for what is none. Says nothing of whether it is good. */
export function leaseOfOfferToken(token: string): LeaseRef | undefined {
  const [, executionId, attempt] = OFFER_TOKEN.exec(token) ?? [];
  return executionId === undefined ? undefined : { executionId: Number(executionId), attempt: Number(attempt) };
}
