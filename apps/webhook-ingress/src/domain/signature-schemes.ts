import { createHmac } from "node:crypto";
import { SIGNATURE_SCHEMES } from "@millwright/definition";
import { sameText } from "./constant-time.ts";

/** The schemes of definition files, and the one with settings of its own. */
export const ALL_SIGNATURE_SCHEMES = [...SIGNATURE_SCHEMES, "generic_hmac_sha256"] as const;
export type SignatureScheme = (typeof ALL_SIGNATURE_SCHEMES)[number];

/** A header's value as Node reads it (latin1). */
export type Header = (name: string) => string | undefined;

/** A request with the raw bytes of its body. */
export type SignedRequest = { readonly header: Header; readonly body: Uint8Array };

export type SignatureSettings = {
  readonly secret: string;
  readonly now: Date;
  /** Used by `generic_hmac_sha256`. */
  readonly signatureHeader: string | undefined;
  readonly signaturePrefix: string | undefined;
};

type Scheme = {
  /** Returns the provider's own delivery id; verified headers only where the scheme signs it. */
  readonly deliveryId?: (header: Header) => string | undefined;
  /** Returns whether a secret can be the key of this scheme. */
  readonly takesSecret: (secret: string) => boolean;
  readonly verify: (request: SignedRequest, settings: SignatureSettings) => boolean;
};

/** The largest difference between a signed time and now, in either direction. */
const TOLERANCE_MS = 5 * 60_000;
const LINEAR_TOLERANCE_MS = 60_000;

const anySecret = (secret: string): boolean => secret !== "";

/** The verifier of each scheme. */
export const SCHEMES: Readonly<Record<SignatureScheme, Scheme>> = {
  github: {
    deliveryId: (header) => header("x-github-delivery"),
    takesSecret: anySecret,
    verify: (request, { secret }) =>
      isHexOf(after("sha256=", request.header("x-hub-signature-256")), mac("sha256", secret, request.body)),
  },
  pagerduty: {
    deliveryId: (header) => header("x-webhook-id"),
    takesSecret: anySecret,
    verify: (request, { secret }) => {
      const expected = mac("sha256", secret, request.body);
      return items(request.header("x-pagerduty-signature"), ",").some((item) => isHexOf(after("v1=", item), expected));
    },
  },
  sentry: {
    deliveryId: (header) => header("request-id"),
    takesSecret: anySecret,
    verify: (request, { secret }) =>
      isHexOf(request.header("sentry-hook-signature"), mac("sha256", secret, request.body)),
  },
  standard_webhooks: {
    deliveryId: (header) => standardHeaders(header)?.id,
    takesSecret: (secret) => standardKey(secret) !== undefined,
    verify: verifyStandard,
  },
  stripe: {
    takesSecret: anySecret,
    verify: (request, { secret, now }) => {
      const parts = items(request.header("stripe-signature"), ",");
      const time = parts.flatMap((part) => after("t=", part) ?? []).at(-1);
      if (time === undefined || !isRecent(time, now)) return false;
      const expected = mac("sha256", secret, Buffer.from(`${time}.`), request.body); // the key includes the prefix whsec_
      return parts.some((part) => isHexOf(after("v1=", part), expected));
    },
  },
  vercel: {
    takesSecret: anySecret,
    verify: (request, { secret }) => isHexOf(request.header("x-vercel-signature"), mac("sha1", secret, request.body)),
  },
  slack: {
    takesSecret: anySecret,
    verify: (request, { secret, now }) => {
      const time = request.header("x-slack-request-timestamp");
      return (
        time !== undefined &&
        isRecent(time, now) &&
        isHexOf(
          after("v0=", request.header("x-slack-signature")),
          mac("sha256", secret, Buffer.from(`v0:${time}:`), request.body),
        )
      );
    },
  },
  linear: {
    deliveryId: (header) => header("linear-delivery"),
    takesSecret: anySecret,
    verify: (request, { secret, now }) =>
      isHexOf(request.header("linear-signature"), mac("sha256", secret, request.body)) &&
      isRecentLinear(request.body, now),
  },
  shopify: {
    deliveryId: (header) => header("x-shopify-webhook-id"),
    takesSecret: anySecret,
    verify: (request, { secret }) =>
      sameText(request.header("x-shopify-hmac-sha256") ?? "", mac("sha256", secret, request.body).toString("base64")),
  },
  gitlab: {
    deliveryId: (header) => header("x-gitlab-event-uuid"),
    takesSecret: anySecret,
    verify: (request, { secret }) => sameText(textOf(request.header("x-gitlab-token") ?? ""), secret),
  },
  generic_hmac_sha256: {
    takesSecret: anySecret,
    verify: (request, { secret, signatureHeader = "", signaturePrefix = "" }) =>
      isHexOf(
        after(signaturePrefix, request.header(signatureHeader.toLowerCase())),
        mac("sha256", secret, request.body),
      ),
  },
};

/** Verifies Standard Webhooks, also with Svix's header names. */
function verifyStandard({ header, body }: SignedRequest, { secret, now }: SignatureSettings): boolean {
  const key = standardKey(secret);
  const signed = standardHeaders(header);
  if (key === undefined || !signed || !isRecent(signed.time, now)) return false;
  const expected = mac("sha256", key, Buffer.from(`${signed.id}.${signed.time}.`, "latin1"), body).toString("base64");
  return items(signed.signatures, " ").some((item) => sameText(after("v1,", item) ?? "", expected));
}

/** Returns the first complete set of headers; only that set is verified, so an id of another set would be unsigned. */
function standardHeaders(header: Header): { id: string; time: string; signatures: string } | undefined {
  for (const brand of ["webhook", "svix"]) {
    const [id, time, signatures] = ["id", "timestamp", "signature"].map((part) => header(`${brand}-${part}`));
    if (id && time !== undefined && signatures !== undefined) return { id, time, signatures };
  }
  return undefined;
}

/** Returns the key after `whsec_`; undefined if it is empty or not base64. */
function standardKey(secret: string): Buffer | undefined {
  const text = after("whsec_", secret) ?? secret;
  return /^[A-Za-z0-9+/]+={0,2}$/.test(text) && text.length % 4 !== 1 ? Buffer.from(text, "base64") : undefined;
}

const mac = (hash: "sha256" | "sha1", key: string | Uint8Array, ...parts: readonly Uint8Array[]): Buffer => {
  const hmac = createHmac(hash, key);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
};

/** Compares hexadecimal text in either case. */
const isHexOf = (text: string | undefined, expected: Buffer): boolean =>
  sameText((text ?? "").toLowerCase(), expected.toString("hex"));

const after = (prefix: string, text: string | undefined): string | undefined =>
  text?.startsWith(prefix) ? text.slice(prefix.length) : undefined;

const items = (text: string | undefined, separator: string): string[] =>
  (text ?? "").split(separator).map((item) => item.trim());

/** Accepts Unix seconds as a plain integer. */
const isRecent = (seconds: string, now: Date): boolean =>
  /^\d{1,12}$/.test(seconds) && Math.abs(now.getTime() - Number(seconds) * 1000) <= TOLERANCE_MS;

/** Checks Linear's time, which is in the signed body, in milliseconds. */
function isRecentLinear(body: Uint8Array, now: Date): boolean {
  try {
    const { webhookTimestamp } = JSON.parse(Buffer.from(body).toString("utf8")) as { webhookTimestamp?: unknown };
    return typeof webhookTimestamp === "number" && Math.abs(now.getTime() - webhookTimestamp) <= LINEAR_TOLERANCE_MS;
  } catch {
    return false; // not JSON, or null
  }
}

/** Decodes a header's bytes as UTF-8. */
const textOf = (header: string): string => Buffer.from(header, "latin1").toString("utf8");
