import type { Clock } from "@millwright/clock";
import { isUuid } from "@millwright/ids";
import { isJson } from "@millwright/payload-filter";
import { isSignatureRight, isTokenRight } from "../domain/authenticate.ts";
import { identityOf } from "../domain/delivery.ts";
import { BODY_BYTES_MAX } from "../domain/limits.ts";
import type { Entry, Receiver, Recorded } from "../store/delivery-store.ts";

/** A body as far as it was read: whole, or how large it is (declared, or counted so far) when that is too much; or its end never came. */
export type ReadBody = { readonly bytes: Uint8Array } | { readonly tooLargeBytes: number } | { readonly isLost: true };

/** A POST to a webhook's address. Nothing of it is trusted. */
export type InboundDelivery = {
  readonly webhookUid: string;
  /** The path segment after the uid, decoded. */
  readonly token: string | undefined;
  readonly address: string;
  readonly requestId: string;
  readonly header: (name: string) => string | undefined;
  /** Reads at most so many bytes, and answers the same when it is asked again. */
  body(bytesMax: number): Promise<ReadBody>;
};

/** Every way in which a delivery can end; the door has a status for each. */
export type Reception =
  | { readonly outcome: "accepted" | "duplicate"; readonly deliveryId: string }
  | { readonly outcome: "unknown" | "rejected_auth" | "rejected_too_large" | "rejected_invalid_json" | "body_lost" }
  | { readonly outcome: "limited"; readonly retryAfterSeconds: number };

export type ReceiveDeliveryDeps = {
  deliveries: {
    meet(uid: string, address: string, now: Date): Promise<Receiver | undefined>;
    record(to: Receiver, entry: Entry, requestId: string): Promise<Recorded>;
    recordFailure(to: Receiver, address: string, entry: Pick<Entry, "outcome" | "sizeBytes" | "receivedAt">): Promise<Recorded>;
  };
  clock: Clock;
};

/**
 * Takes one delivery: answers only after its row is durable, and with what the sender may know. The order of checks
 * (decisions "order of checks"):
 *
 *   a token:      lookup → failed-auth budget → credential → 60 a minute → size → JSON → identity, stored
 *   a signature:  lookup → failed-auth budget → size → signature over the raw bytes → 60 a minute → JSON → identity, stored
 *
 * The 60 a minute are counted by the statement that stores, so the body is read before them; the answer keeps the order.
 */
export async function receiveDelivery(deps: ReceiveDeliveryDeps, inbound: InboundDelivery): Promise<Reception> {
  const receivedAt = deps.clock.now();
  const to = isUuid(inbound.webhookUid) ? await deps.deliveries.meet(inbound.webhookUid, inbound.address, receivedAt) : undefined;
  if (!to) return { outcome: "unknown" };
  if (to.refusedForSeconds !== undefined) return { outcome: "limited", retryAfterSeconds: to.refusedForSeconds };
  return to.authMode === "signature" ? receiveSigned(deps, inbound, to, receivedAt) : receiveWithToken(deps, inbound, to, to.authMode, receivedAt);
}

async function receiveWithToken(deps: ReceiveDeliveryDeps, inbound: InboundDelivery, to: Receiver, mode: "token" | "url_token", receivedAt: Date): Promise<Reception> {
  if (!isTokenRight(mode, inbound, to.secret)) {
    const sizeBytes = Number(inbound.header("content-length") ?? 0) || 0; // unread
    return ended(await deps.deliveries.recordFailure(to, inbound.address, { outcome: "rejected_auth", sizeBytes, receivedAt }));
  }
  const body = await inbound.body(BODY_BYTES_MAX);
  if ("isLost" in body) return { outcome: "body_lost" };
  if ("tooLargeBytes" in body) return ended(await deps.deliveries.record(to, { outcome: "rejected_too_large", sizeBytes: body.tooLargeBytes, receivedAt }, inbound.requestId));
  return store(deps, inbound, to, body.bytes, receivedAt);
}

async function receiveSigned(deps: ReceiveDeliveryDeps, inbound: InboundDelivery, to: Receiver, receivedAt: Date): Promise<Reception> {
  const body = await inbound.body(BODY_BYTES_MAX);
  if ("isLost" in body) return { outcome: "body_lost" };
  // Nobody has vouched for it: it counts as failed authentication.
  if ("tooLargeBytes" in body) return ended(await deps.deliveries.recordFailure(to, inbound.address, { outcome: "rejected_too_large", sizeBytes: body.tooLargeBytes, receivedAt }));
  const request = { header: inbound.header, token: inbound.token, body: body.bytes };
  if (!isSignatureRight(to, request, to.secret, receivedAt)) {
    return ended(await deps.deliveries.recordFailure(to, inbound.address, { outcome: "rejected_auth", sizeBytes: body.bytes.length, receivedAt }));
  }
  return store(deps, inbound, to, body.bytes, receivedAt);
}

async function store(deps: ReceiveDeliveryDeps, inbound: InboundDelivery, to: Receiver, bytes: Uint8Array, receivedAt: Date): Promise<Reception> {
  const isIdentity = /^(?:identity)?$/i.test(inbound.header("content-encoding")?.trim() ?? ""); // a compressed body is no JSON, and never inflated
  if (!isIdentity || !isJson(bytes)) {
    return ended(await deps.deliveries.record(to, { outcome: "rejected_invalid_json", sizeBytes: bytes.length, receivedAt }, inbound.requestId));
  }
  const identity = identityOf(to, inbound.header, bytes);
  const recorded = await deps.deliveries.record(to, { outcome: "accepted", identity, sizeBytes: bytes.length, payload: bytes, receivedAt }, inbound.requestId);
  return ended(recorded, identity.id);
}

function ended(recorded: Recorded, deliveryId = ""): Reception {
  if ("limitedForSeconds" in recorded) return { outcome: "limited", retryAfterSeconds: recorded.limitedForSeconds };
  const { outcome } = recorded;
  return outcome === "accepted" || outcome === "duplicate" ? { outcome, deliveryId } : { outcome };
}
