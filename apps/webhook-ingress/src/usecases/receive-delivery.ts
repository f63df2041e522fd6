import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { isJson } from "@millwright/payload-filter";
import { isSignatureRight, isTokenRight } from "../domain/authenticate.ts";
import { identityOf, namedIdentity } from "../domain/delivery.ts";
import { BODY_BYTES_MAX } from "../domain/limits.ts";
import type { Entry, Recorded } from "../store/delivery-store.ts";
import type { Met, Receiver } from "../store/receivers.ts";

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
    recall(uid: string): Receiver | undefined;
    meet(uid: string, address: string, now: Date): Promise<Met | undefined>;
    record(to: Receiver, address: string, entry: Entry, requestId: string): Promise<Recorded | "changed">;
    recordFailure(to: Receiver, address: string, entry: Failure): Promise<Recorded>;
  };
  clock: Clock;
};

type Failure = Pick<Entry, "outcome" | "sizeBytes" | "receivedAt">;

/** What a webhook makes of a delivery: it is let in, to be recorded as something; its credential is wrong; or its body never came. */
type Verdict =
  | { readonly letIn: Entry; readonly deliveryId?: string }
  | { readonly failure: Failure }
  | { readonly isLost: true };

/** A webhook that changes between being met and recording its delivery is met again, so often. */
const CHANGES_MAX = 10;

/**
 * Takes one delivery: answers only after its row is durable, and with what the sender may know. The order of checks
 * (decisions "order of checks"):
 *
 *   a token:      lookup → failed-auth budget → credential → 60 a minute → size → JSON → identity, stored
 *   a signature:  lookup → failed-auth budget → size → signature over the raw bytes → 60 a minute → JSON → identity, stored
 *
 * The 60 a minute are counted by the statement that stores, so the body is read before them; the answer keeps the order.
 *
 * A webhook that was met before is not looked up again for a delivery that it lets in: the statement that stores looks
 * whether it, its secret and the budget still are so. Every other end is decided by a webhook looked up for this delivery.
 */
export async function receiveDelivery(deps: ReceiveDeliveryDeps, inbound: InboundDelivery): Promise<Reception> {
  const { deliveries } = deps;
  const receivedAt = deps.clock.now();
  if (!isUuid(inbound.webhookUid)) return { outcome: "unknown" };
  const record = async (
    to: Receiver,
    { letIn, deliveryId }: Extract<Verdict, { letIn: Entry }>,
  ): Promise<Reception | undefined> => {
    const recorded = await deliveries.record(to, inbound.address, letIn, inbound.requestId);
    return recorded === "changed" ? undefined : ended(recorded, deliveryId);
  };
  const known = deliveries.recall(inbound.webhookUid);
  const hope = known && (await judge(inbound, known, receivedAt));
  const reception = known && hope && "letIn" in hope ? await record(known, hope) : undefined;
  if (reception) return reception;
  for (let changes = 0; changes < CHANGES_MAX; changes++) {
    const met = await deliveries.meet(inbound.webhookUid, inbound.address, receivedAt);
    if (!met) return { outcome: "unknown" };
    const { to, refusedForSeconds } = met;
    if (refusedForSeconds !== undefined) return { outcome: "limited", retryAfterSeconds: refusedForSeconds };
    const verdict = await judge(inbound, to, receivedAt);
    if ("isLost" in verdict) return { outcome: "body_lost" };
    if ("failure" in verdict) return ended(await deliveries.recordFailure(to, inbound.address, verdict.failure));
    const recorded = await record(to, verdict);
    if (recorded) return recorded;
  }
  throw new DomainError({
    kind: "unavailable",
    reason: "webhook_changing",
    message: "The webhook is being changed; try again.",
  });
}

async function judge(inbound: InboundDelivery, to: Receiver, receivedAt: Date): Promise<Verdict> {
  const isSigned = to.authMode === "signature";
  if (to.authMode !== "signature" && !isTokenRight(to.authMode, inbound, to.secret)) {
    const sizeBytes = Number(inbound.header("content-length") ?? 0) || 0; // unread
    return { failure: { outcome: "rejected_auth", sizeBytes, receivedAt } };
  }
  const body = await inbound.body(BODY_BYTES_MAX);
  if ("isLost" in body) return body;
  if ("tooLargeBytes" in body) {
    const entry = { outcome: "rejected_too_large", sizeBytes: body.tooLargeBytes, receivedAt } as const;
    if (isSigned) return { failure: entry }; // nobody has vouched for one that would be signed
    const identity = namedIdentity(to, inbound.header);
    return { letIn: { ...entry, ...(identity && { identity }) } };
  }
  const { bytes } = body;
  if (
    isSigned &&
    !isSignatureRight(to, { header: inbound.header, token: inbound.token, body: bytes }, to.secret, receivedAt)
  ) {
    return { failure: { outcome: "rejected_auth", sizeBytes: bytes.length, receivedAt } };
  }
  const isPlain = /^(?:identity)?$/i.test(inbound.header("content-encoding")?.trim() ?? ""); // a compressed body is no JSON, and never inflated
  const identity = identityOf(to, inbound.header, bytes);
  if (!isPlain || !isJson(bytes))
    return { letIn: { outcome: "rejected_invalid_json", identity, sizeBytes: bytes.length, receivedAt } };
  return {
    letIn: { outcome: "accepted", identity, sizeBytes: bytes.length, payload: bytes, receivedAt },
    deliveryId: identity.id,
  };
}

function ended(recorded: Recorded, deliveryId = ""): Reception {
  if ("limitedForSeconds" in recorded) return { outcome: "limited", retryAfterSeconds: recorded.limitedForSeconds };
  const { outcome } = recorded;
  return outcome === "accepted" || outcome === "duplicate" ? { outcome, deliveryId } : { outcome };
}
