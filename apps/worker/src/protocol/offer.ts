import type { CallOptions } from "@connectrpc/connect";
import type { worker } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import type { Clock } from "@millwright/clock";
import { momentOf, type Moment } from "../leases/lease-clock.ts";
import type { WorkerClient } from "./client.ts";
import { retrying, type RetryDeps } from "./retrying.ts";

export type LeaseRef = { readonly executionId: bigint; readonly attempt: number };

const OFFER = /^mwo_([1-9]\d{0,15})_([1-9]\d{0,8})_[\w-]{20,}$/;

/** The one execution and attempt that an offer token is for; undefined for what is none. */
export function leaseOfOffer(token: string): LeaseRef | undefined {
  const [, executionId, attempt] = OFFER.exec(token) ?? [];
  return executionId === undefined ? undefined : { executionId: BigInt(executionId), attempt: Number(attempt) };
}

/** This process has no offer to take any more. */
export const offerGone = (): DomainError =>
  new DomainError({ kind: "unauthenticated", reason: "offer_gone", message: "This offer is not open any more." });

/**
 * Reads what the execution is that the session of an offer token holds. Asks until it is answered: an execution that nobody renews
 * meanwhile is given up by the platform, and then this ends too.
 *
 * Errors: offer_gone · the reason of `signal` · the platform's final refusal.
 */
export async function takeOffered(
  { client, clock, ...deps }: RetryDeps & { readonly client: Pick<WorkerClient, "accept">; readonly clock: Clock },
  lease: LeaseRef,
  signal: AbortSignal,
): Promise<{ readonly assignment: worker.Assignment; readonly sent: Moment }> {
  const sent = momentOf(clock);
  const options = (): CallOptions => ({ timeoutMs: deps.timings().callTimeoutMs, signal });
  const { assignments } = await retrying(deps, signal, () => client.accept({ leases: [lease] }, options()));
  if (!assignments[0]) throw offerGone();
  return { assignment: assignments[0], sent };
}
