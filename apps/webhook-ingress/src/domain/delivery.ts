import { createHash } from "node:crypto";
import type { FactoryUid, TeamUid, Uid } from "@millwright/ids";
import { SCHEMES, type Header } from "./signature-schemes.ts";
import type { WebhookAuth, WebhookSettings, WebhookUid } from "./webhook.ts";

export type DeliveryUid = Uid<"delivery">;

export const OUTCOMES = ["accepted", "duplicate", "rejected_auth", "rejected_invalid_json", "rejected_too_large"] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** An entry of a webhook's log. Only an accepted one keeps its payload. */
export type Delivery = {
  readonly uid: DeliveryUid;
  readonly webhookUid: WebhookUid;
  readonly teamUid: TeamUid;
  readonly factoryUid: FactoryUid;
  /** Absent of what nobody vouched for, and of a body too large to be hashed whose sender gave no id. */
  readonly deliveryId: string | undefined;
  readonly outcome: Outcome;
  /** As declared, or as counted so far, when it is too large. */
  readonly sizeBytes: number;
  readonly receivedAt: Date;
};

/** What makes two deliveries one. Ids of different kinds never meet, however alike they look. */
export type DeliveryIdentity = { readonly kind: "configured" | "provider" | "sender" | "hash"; readonly id: string };

/** The specification's own, then what published senders use. */
const SENDER_HEADERS = ["x-service-delivery-id", "x-warp-delivery-id"];

type Identified = Pick<WebhookAuth, "signatureScheme"> & Pick<WebhookSettings, "deliveryIdHeader">;

/** The identity of a body: the first of the four sources (spec §4, decisions "delivery identity") that gives a usable value. */
export const identityOf = (webhook: Identified, header: Header, body: Uint8Array): DeliveryIdentity =>
  namedIdentity(webhook, header) ?? { kind: "hash", id: `sha256:${createHash("sha256").update(body).digest("hex")}` };

/** The first of the three sources that need no body. */
export function namedIdentity(webhook: Identified, header: Header): DeliveryIdentity | undefined {
  const configured = webhook.deliveryIdHeader === undefined ? undefined : usable(header(webhook.deliveryIdHeader.toLowerCase()));
  if (configured !== undefined) return { kind: "configured", id: configured };
  const provider = webhook.signatureScheme === undefined ? undefined : usable(SCHEMES[webhook.signatureScheme].deliveryId?.(header));
  if (provider !== undefined) return { kind: "provider", id: provider };
  const sender = SENDER_HEADERS.map((name) => usable(header(name))).find((value) => value !== undefined);
  return sender === undefined ? undefined : { kind: "sender", id: sender };
}

/** 1 to 256 visible ASCII characters between spaces; anything else counts as absent. */
export function usable(value: string | undefined): string | undefined {
  const trimmed = value?.trim();
  return trimmed !== undefined && /^[\x21-\x7e]{1,256}$/.test(trimmed) ? trimmed : undefined;
}
