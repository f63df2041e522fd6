import { createHash } from "node:crypto";
import type { FactoryUid, TeamUid, Uid } from "@millwright/ids";
import { SCHEMES, type Header } from "./signature-schemes.ts";
import type { WebhookAuth, WebhookSettings, WebhookUid } from "./webhook.ts";

export type DeliveryUid = Uid<"delivery">;

export const OUTCOMES = [
  "accepted",
  "duplicate",
  "rejected_auth",
  "rejected_invalid_json",
  "rejected_too_large",
] as const;
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

type Source = "configured" | "provider" | "sender";

/** What makes two deliveries one. Ids of different kinds never meet, however alike they look. `…_hash`: of an id that is not stored as it is. */
export type DeliveryIdentity = { readonly kind: Source | `${Source}_hash` | "hash"; readonly id: string };

/** The specification's own, then what published senders use. */
const SENDER_HEADERS = ["x-service-delivery-id", "x-warp-delivery-id"];

type Identified = Pick<WebhookAuth, "signatureScheme"> & Pick<WebhookSettings, "deliveryIdHeader">;

/** The identity of a body: the first of the four sources (spec §4, decisions "delivery identity") that gives a usable value. */
export const identityOf = (webhook: Identified, header: Header, body: Uint8Array): DeliveryIdentity =>
  namedIdentity(webhook, header) ?? { kind: "hash", id: `sha256:${createHash("sha256").update(body).digest("hex")}` };

/** The first of the three sources that need no body. */
export function namedIdentity(webhook: Identified, header: Header): DeliveryIdentity | undefined {
  return (
    headerIdentity(
      "configured",
      webhook.deliveryIdHeader === undefined ? undefined : header(webhook.deliveryIdHeader.toLowerCase()),
    ) ??
    headerIdentity(
      "provider",
      webhook.signatureScheme === undefined ? undefined : SCHEMES[webhook.signatureScheme].deliveryId?.(header),
    ) ??
    SENDER_HEADERS.map((name) => headerIdentity("sender", header(name))).find((identity) => identity !== undefined)
  );
}

/** An id is stored with runs as a metadata value, which has no more bytes than this. */
const ID_BYTES_MAX = 256;
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u;

/**
 * The identity that a header's value gives: the value itself or, where it is too long or cannot be shown, its SHA-256 as a kind of its own.
 * `value` has one character per byte, as Node.js reads headers. Undefined: the header is absent or empty.
 */
export function headerIdentity<S extends string>(
  source: S,
  value: string | undefined,
): { readonly kind: S | `${S}_hash`; readonly id: string } | undefined {
  const trimmed = value?.replace(/^[ \t]+|[ \t]+$/g, "") ?? "";
  if (trimmed === "") return undefined;
  const bytes = Buffer.from(trimmed, "latin1");
  const text = decoded(bytes);
  if (text !== undefined && bytes.length <= ID_BYTES_MAX && PRINTABLE.test(text)) return { kind: source, id: text };
  return { kind: `${source}_hash`, id: `sha256:${createHash("sha256").update(bytes).digest("hex")}` };
}

/** Undefined for bytes that are not UTF-8: no two values may look the same. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
