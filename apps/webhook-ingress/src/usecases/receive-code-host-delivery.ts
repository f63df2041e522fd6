import type { Clock } from "@millwright/clock";
import { jsonBytes, payloadOf } from "@millwright/code-host-events";
import { isUuid } from "@millwright/ids";
import { isJson } from "@millwright/payload-filter";
import {
  actionOf,
  codeHostIdentity,
  eventName,
  isCodeHostSender,
  isRejectedUnread,
  storedHeaders,
} from "../domain/code-host-webhook.ts";
import { CODE_HOST_BODY_BYTES_MAX } from "../domain/limits.ts";
import type { Recorded } from "../store/delivery-store.ts";
import type { CodeHostDeliveryStore } from "../store/code-host-delivery-store.ts";
import type { InboundDelivery, Reception } from "./receive-delivery.ts";

/** An untrusted POST to a connection's address. */
export type InboundCodeHostDelivery = Pick<InboundDelivery, "address" | "requestId" | "header" | "body"> & {
  readonly codeHostUid: string;
};

export type ReceiveCodeHostDeliveryDeps = {
  codeHostDeliveries: Pick<CodeHostDeliveryStore, "findReceiver" | "record" | "recordFailure">;
  clock: Clock;
};

/**
 * Receives a delivery of a code host. Returns only after its row is durable. The order of checks is that of webhooks
 * with signatures: lookup → failed-auth budget → (GitLab token) → size → signature over the raw bytes → the
 * connection's budget → JSON → identity, stored. The kind of event is not checked: a ping is stored like any other.
 */
export async function receiveCodeHostDelivery(
  deps: ReceiveCodeHostDeliveryDeps,
  inbound: InboundCodeHostDelivery,
): Promise<Reception> {
  const { codeHostDeliveries: deliveries } = deps;
  const { address, header } = inbound;
  const receivedAt = deps.clock.now();
  const to = isUuid(inbound.codeHostUid)
    ? await deliveries.findReceiver(inbound.codeHostUid, address, receivedAt)
    : undefined;
  if (!to) return { outcome: "unknown" };
  if (to.refusedForSeconds !== undefined) return { outcome: "limited", retryAfterSeconds: to.refusedForSeconds };
  if (isRejectedUnread(to.provider, header, to.secret)) {
    return toReception(
      await deliveries.recordFailure(to, address, {
        outcome: "rejected_auth",
        sizeBytes: Number(header("content-length") ?? 0) || 0,
        receivedAt,
      }),
    );
  }
  const read = await inbound.body(CODE_HOST_BODY_BYTES_MAX);
  if ("isLost" in read) return { outcome: "body_incomplete" };
  // It is not authenticated, so it counts as a failure.
  if ("tooLargeBytes" in read)
    return toReception(
      await deliveries.recordFailure(to, address, {
        outcome: "rejected_too_large",
        sizeBytes: read.tooLargeBytes,
        receivedAt,
      }),
    );
  const body = read.bytes;
  if (!isCodeHostSender(to.provider, { header, body }, to.secret, receivedAt)) {
    return toReception(
      await deliveries.recordFailure(to, address, { outcome: "rejected_auth", sizeBytes: body.length, receivedAt }),
    );
  }
  const headers = storedHeaders(header);
  const entry = { event: eventName(to.provider, header), action: "", sizeBytes: body.length, receivedAt };
  const isPlain = /^(?:identity)?$/i.test(header("content-encoding")?.trim() ?? ""); // a compressed body is never inflated
  if (!isPlain || !isJson(jsonBytes({ headers, body })))
    return toReception(await deliveries.record(to, { ...entry, outcome: "rejected_invalid_json" }, inbound.requestId));
  const identity = codeHostIdentity(to.provider, header, body);
  const action = actionOf(to.provider, payloadOf({ headers, body }));
  return toReception(
    await deliveries.record(to, { ...entry, outcome: "accepted", action, identity, headers, body }, inbound.requestId),
    identity.id,
  );
}

function toReception(recorded: Recorded, deliveryId = ""): Reception {
  if ("limitedForSeconds" in recorded) return { outcome: "limited", retryAfterSeconds: recorded.limitedForSeconds };
  const { outcome } = recorded;
  return outcome === "accepted" || outcome === "duplicate" ? { outcome, deliveryId } : { outcome };
}
