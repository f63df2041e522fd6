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

/** An entry of a webhook's log. Only accepted entries have a payload. */
export type Delivery = {
  readonly uid: DeliveryUid;
  readonly webhookUid: WebhookUid;
  readonly teamUid: TeamUid;
  readonly factoryUid: FactoryUid;
  /** Absent for unauthenticated deliveries, and for bodies too large to be hashed without an id of the sender. */
  readonly deliveryId: string | undefined;
  readonly outcome: Outcome;
  /** For a body that is too large: as declared, or as counted so far. */
  readonly sizeBytes: number;
  readonly receivedAt: Date;
};

type Source = "configured" | "provider" | "sender";

/**
 * The deduplication key of a delivery. Ids of different kinds never collide. `…_hash`: the hash of an id that is not
 * stored verbatim.
 */
export type DeliveryIdentity = { readonly kind: Source | `${Source}_hash` | "hash"; readonly id: string };

/** The specification's header, then that of published senders. */
const SENDER_HEADERS = ["x-service-delivery-id", "x-warp-delivery-id"];

type Identified = Pick<WebhookAuth, "signatureScheme"> & Pick<WebhookSettings, "deliveryIdHeader">;

/** Returns the identity of a delivery: the first of the four sources with a usable value. */
export const identityOf = (webhook: Identified, header: Header, body: Uint8Array): DeliveryIdentity =>
  namedIdentity(webhook, header) ?? { kind: "hash", id: `sha256:${createHash("sha256").update(body).digest("hex")}` };

/** Returns the identity from the first of the three sources that need no body. */
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

/** An id is stored as a metadata value of runs, which has at most this many bytes. */
const ID_BYTES_MAX = 256;
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]+$/u;

/**
 * Returns the identity from a header's value: the value, or its SHA-256 as a separate kind if it is too long or not
 * printable. `value` has one character per byte, as Node.js reads headers. Returns undefined if the header is absent or
 * empty.
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

/** Returns undefined for bytes that are not UTF-8, so that two different values never decode to the same text. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
