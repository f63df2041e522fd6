import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { isJson } from "@millwright/payload-filter";
import { isSignatureValid, isTokenValid } from "../domain/authenticate.ts";
import { identityOf, namedIdentity } from "../domain/delivery.ts";
import { BODY_BYTES_MAX } from "../domain/limits.ts";
import type { Entry, Recorded, DeliveryStore } from "../store/delivery-store.ts";
import type { Receiver } from "../store/receivers.ts";

/**
 * The result of reading a body: its bytes; its size (declared, or counted so far) if it is too large; or it did not
 * arrive.
 */
export type ReadBody = { readonly bytes: Uint8Array } | { readonly tooLargeBytes: number } | { readonly isLost: true };

/** An untrusted POST to a webhook's address. */
export type InboundDelivery = {
  readonly webhookUid: string;
  /** The path segment after the uid, decoded. */
  readonly token: string | undefined;
  readonly address: string;
  readonly requestId: string;
  readonly header: (name: string) => string | undefined;
  /** Reads at most `bytesMax` bytes; repeated calls return the same result. */
  body(bytesMax: number): Promise<ReadBody>;
};

/** Every outcome of a delivery; the listener maps each to a status. */
export type Reception =
  | { readonly outcome: "accepted" | "duplicate"; readonly deliveryId: string }
  | {
      readonly outcome:
        | "unknown"
        | "rejected_auth"
        | "rejected_too_large"
        | "rejected_invalid_json"
        | "body_incomplete";
    }
  | { readonly outcome: "limited"; readonly retryAfterSeconds: number };

export type ReceiveDeliveryDeps = {
  deliveries: Pick<DeliveryStore, "cachedReceiver" | "findReceiver" | "record" | "recordFailure">;
  clock: Clock;
};

type Failure = Pick<Entry, "outcome" | "sizeBytes" | "receivedAt">;

/** The result of authenticating a delivery: the entry to record, the failure to count, or its body did not arrive. */
type Verdict =
  | { readonly entry: Entry; readonly deliveryId?: string }
  | { readonly failure: Failure }
  | { readonly isLost: true };

/** Retries if the webhook changes between reading and recording. */
const ATTEMPTS_MAX = 10;

/**
 * Receives a delivery. Returns only after its row is durable. The order of checks:
 *
 *   a token:      lookup → failed-auth budget → credential → 60 a minute → size → JSON → identity, stored
 *   a signature:  lookup → failed-auth budget → size → signature over the raw bytes → 60 a minute → JSON → identity, stored
 *
 * The inserting statement also counts the 60 a minute, so the body is read first; the response follows the order above.
 *
 * If the cached receiver authenticates the delivery, it is recorded optimistically: the inserting statement checks that the
 * webhook, its secret and the budget are unchanged. Every other outcome is based on a receiver that was read for this delivery.
 */
export async function receiveDelivery(deps: ReceiveDeliveryDeps, inbound: InboundDelivery): Promise<Reception> {
  const { deliveries } = deps;
  const receivedAt = deps.clock.now();
  if (!isUuid(inbound.webhookUid)) return { outcome: "unknown" };
  const record = async (
    to: Receiver,
    { entry, deliveryId }: Extract<Verdict, { entry: Entry }>,
  ): Promise<Reception | undefined> => {
    const recorded = await deliveries.record(to, inbound.address, entry, inbound.requestId);
    return recorded === "stale" ? undefined : toReception(recorded, deliveryId);
  };
  const cached = deliveries.cachedReceiver(inbound.webhookUid);
  const optimistic = cached && (await authenticate(inbound, cached, receivedAt));
  const reception = cached && optimistic && "entry" in optimistic ? await record(cached, optimistic) : undefined;
  if (reception) return reception;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    const found = await deliveries.findReceiver(inbound.webhookUid, inbound.address, receivedAt);
    if (!found) return { outcome: "unknown" };
    const { to, refusedForSeconds } = found;
    if (refusedForSeconds !== undefined) return { outcome: "limited", retryAfterSeconds: refusedForSeconds };
    const verdict = await authenticate(inbound, to, receivedAt);
    if ("isLost" in verdict) return { outcome: "body_incomplete" };
    if ("failure" in verdict) return toReception(await deliveries.recordFailure(to, inbound.address, verdict.failure));
    const recorded = await record(to, verdict);
    if (recorded) return recorded;
  }
  throw new DomainError({
    kind: "unavailable",
    reason: "webhook_changing",
    message: "The webhook is being changed; retry the delivery.",
  });
}

async function authenticate(inbound: InboundDelivery, to: Receiver, receivedAt: Date): Promise<Verdict> {
  const isSigned = to.authMode === "signature";
  if (to.authMode !== "signature" && !isTokenValid(to.authMode, inbound, to.secret)) {
    const sizeBytes = Number(inbound.header("content-length") ?? 0) || 0; // unread
    return { failure: { outcome: "rejected_auth", sizeBytes, receivedAt } };
  }
  const body = await inbound.body(BODY_BYTES_MAX);
  if ("isLost" in body) return body;
  if ("tooLargeBytes" in body) {
    const entry = { outcome: "rejected_too_large", sizeBytes: body.tooLargeBytes, receivedAt } as const;
    if (isSigned) return { failure: entry }; // its signature cannot be verified
    const identity = namedIdentity(to, inbound.header);
    return { entry: { ...entry, identity } };
  }
  const { bytes } = body;
  if (
    isSigned &&
    !isSignatureValid(to, { header: inbound.header, token: inbound.token, body: bytes }, to.secret, receivedAt)
  ) {
    return { failure: { outcome: "rejected_auth", sizeBytes: bytes.length, receivedAt } };
  }
  const isPlain = /^(?:identity)?$/i.test(inbound.header("content-encoding")?.trim() ?? ""); // a compressed body is never inflated
  const identity = identityOf(to, inbound.header, bytes);
  if (!isPlain || !isJson(bytes))
    return { entry: { outcome: "rejected_invalid_json", identity, sizeBytes: bytes.length, receivedAt } };
  return {
    entry: { outcome: "accepted", identity, sizeBytes: bytes.length, payload: bytes, receivedAt },
    deliveryId: identity.id,
  };
}

function toReception(recorded: Recorded, deliveryId = ""): Reception {
  if ("limitedForSeconds" in recorded) return { outcome: "limited", retryAfterSeconds: recorded.limitedForSeconds };
  const { outcome } = recorded;
  return outcome === "accepted" || outcome === "duplicate" ? { outcome, deliveryId } : { outcome };
}
