import type { CallOptions } from "@connectrpc/connect";
import type { worker } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import type { Clock } from "@millwright/clock";
import { momentOf, type Moment } from "../time/moment.ts";
import type { WorkerClient } from "./client.ts";
import { retrying, type RetryDeps } from "./retrying.ts";

export type LeaseRef = { readonly executionId: bigint; readonly attempt: number };

const OFFER = /^mwo_([1-9]\d{0,15})_([1-9]\d{0,8})_[\w-]{20,}$/;

/** Returns the execution and attempt of an offer token, or undefined for an invalid token. */
export function leaseOfOffer(token: string): LeaseRef | undefined {
  const [, executionId, attempt] = OFFER.exec(token) ?? [];
  return executionId === undefined ? undefined : { executionId: BigInt(executionId), attempt: Number(attempt) };
}

/** Returns the error of a process whose offer is no longer open. */
export const offerGone = (): DomainError =>
  new DomainError({ kind: "unauthenticated", reason: "offer_gone", message: "This offer is no longer open." });

/**
 * Returns the assignment of the execution that the session's offer token belongs to. Retries until the platform
 * responds. If the lease is not renewed in time, the platform declares it lost, and the retries then end with
 * offer_gone. Errors: offer_gone · the reason of `signal` · the platform's permanent refusal.
 */
export async function acceptOffered(
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
