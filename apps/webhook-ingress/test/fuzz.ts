import { createHmac, randomBytes, randomInt } from "node:crypto";
import { newUid } from "@millwright/ids";
import { ALL_SIGNATURE_SCHEMES, type SignatureScheme } from "../src/domain/signature-schemes.ts";
import type { Receiver } from "../src/store/receivers.ts";
import type { InboundDelivery } from "../src/usecases/receive-delivery.ts";

const pick = <T>(values: readonly T[]): T => values[randomInt(values.length)]!;
const oneIn = (n: number): boolean => randomInt(n) === 0;

/** How each scheme's sender signs, implemented independently of the verifier. */
const SIGN: Readonly<
  Record<SignatureScheme, (secret: string, body: Buffer, seconds: number) => Record<string, string>>
> = {
  github: (secret, body) => ({
    "x-hub-signature-256": `sha256=${mac(secret, body)}`,
    "x-github-delivery": randomBytes(8).toString("hex"),
  }),
  pagerduty: (secret, body) => ({ "x-pagerduty-signature": `v1=${mac("other", body)},v1=${mac(secret, body)}` }),
  sentry: (secret, body) => ({ "sentry-hook-signature": mac(secret, body) }),
  standard_webhooks: (secret, body, seconds) => {
    const key = Buffer.from(secret.slice(6), "base64");
    return {
      "webhook-id": "msg",
      "webhook-timestamp": String(seconds),
      "webhook-signature": `v1,${createHmac("sha256", key).update(`msg.${seconds}.`).update(body).digest("base64")}`,
    };
  },
  stripe: (secret, body, seconds) => ({
    "stripe-signature": `t=${seconds},v1=${createHmac("sha256", secret).update(`${seconds}.`).update(body).digest("hex")}`,
  }),
  vercel: (secret, body) => ({ "x-vercel-signature": createHmac("sha1", secret).update(body).digest("hex") }),
  slack: (secret, body, seconds) => ({
    "x-slack-request-timestamp": String(seconds),
    "x-slack-signature": `v0=${createHmac("sha256", secret).update(`v0:${seconds}:`).update(body).digest("hex")}`,
  }),
  linear: (secret, body) => ({ "linear-signature": mac(secret, body) }),
  shopify: (secret, body) => ({ "x-shopify-hmac-sha256": createHmac("sha256", secret).update(body).digest("base64") }),
  gitlab: (secret) => ({ "x-gitlab-token": secret }),
  generic_hmac_sha256: (secret, body) => ({ "x-own": `v=${mac(secret, body)}` }),
};
const mac = (secret: string, body: Buffer): string => createHmac("sha256", secret).update(body).digest("hex");

const TOLERANCE_SECONDS: Partial<Record<SignatureScheme, number>> = { standard_webhooks: 300, stripe: 300, slack: 300 };
/** Linear is left out, because its time is in the body. */
const SCHEMES = ALL_SIGNATURE_SCHEMES.filter((scheme) => scheme !== "linear");

/** Returns a webhook, its cached receiver, a request to it at a time, and whether its credential is right. */
export function aRequest(now: Date): {
  to: Receiver;
  cached: Receiver | undefined;
  inbound: InboundDelivery;
  body: Buffer;
  isRight: boolean;
  at: Date;
} {
  const authMode = pick(["token", "url_token", "signature", "signature"] as const);
  const signatureScheme = authMode === "signature" ? pick(SCHEMES) : undefined;
  const secret =
    signatureScheme === "standard_webhooks"
      ? `whsec_${randomBytes(24).toString("base64")}`
      : randomBytes(12).toString("base64url");
  const to: Receiver = {
    uid: newUid(),
    teamUid: newUid(),
    factoryUid: newUid(),
    authMode,
    signatureScheme,
    secretName: undefined,
    secret: oneIn(20) ? undefined : secret,
    version: 2,
    sealed: secret,
    deliveryIdHeader: oneIn(3) ? "X-Event-Id" : undefined,
    signatureHeader: signatureScheme === "generic_hmac_sha256" ? "X-Own" : undefined,
    signaturePrefix: signatureScheme === "generic_hmac_sha256" ? "v=" : undefined,
  };
  const body = aBody();
  const seconds = Math.floor(now.getTime() / 1000);
  const skew = pick([0, 0, 0, 299, -299, 300, 301, -301, 5_000]);
  const fault = oneIn(3) ? pick(["secret", "header", "absent", "path", "body"] as const) : undefined;
  const headers: Record<string, string> = { "content-length": String(body.length) };
  const used =
    fault === "secret"
      ? signatureScheme === "standard_webhooks"
        ? `whsec_${randomBytes(24).toString("base64")}`
        : randomBytes(12).toString("base64url")
      : secret;
  const signed = fault === "body" ? Buffer.concat([body, Buffer.from([0])]) : body;
  const proof =
    authMode === "token"
      ? { authorization: `Bearer ${used}` }
      : signatureScheme
        ? SIGN[signatureScheme](used, signed, seconds)
        : {};
  if (fault !== "absent") Object.assign(headers, proof);
  const names = Object.keys(proof);
  if (fault === "header" && names.length > 0) headers[pick(names)] = randomBytes(randomInt(40)).toString("latin1");
  if (oneIn(4)) headers["x-event-id"] = randomBytes(randomInt(20)).toString(pick(["hex", "latin1"]));
  if (oneIn(4)) headers["x-service-delivery-id"] = randomBytes(randomInt(20)).toString("hex");
  const token =
    authMode === "url_token"
      ? fault === undefined || fault === "body" || fault === "header"
        ? secret
        : fault === "secret"
          ? used
          : undefined
      : fault === "path"
        ? secret
        : undefined;
  const isFaulty =
    fault !== undefined &&
    !(authMode !== "signature" && fault === "body") &&
    !(authMode === "url_token" && fault === "header") &&
    !(signatureScheme === "gitlab" && fault === "body") &&
    !onlyNames(signatureScheme, fault, headers, proof);
  const isInTime = signatureScheme === undefined || Math.abs(skew) <= (TOLERANCE_SECONDS[signatureScheme] ?? Infinity);
  const inbound: InboundDelivery = {
    webhookUid: to.uid,
    token,
    address: "192.0.2.1",
    requestId: "r",
    header: (name) => headers[name],
    body: async (most) => (body.length > most ? { tooLargeBytes: body.length } : { bytes: body }),
  };
  const cached = oneIn(3)
    ? undefined
    : oneIn(2)
      ? to
      : {
          ...to,
          version: 1,
          ...(oneIn(2) && { secret: used, deliveryIdHeader: undefined }),
          ...(oneIn(4) && { secret: undefined }),
        };
  return {
    to,
    cached,
    inbound,
    body,
    isRight: to.secret !== undefined && !isFaulty && isInTime,
    at: new Date((seconds + skew) * 1000),
  };
}

/** Returns whether the fault is in a header that only names the delivery. */
const onlyNames = (
  scheme: SignatureScheme | undefined,
  fault: string,
  headers: Record<string, string>,
  proof: Record<string, string>,
): boolean =>
  scheme === "github" && fault === "header" && headers["x-hub-signature-256"] === proof["x-hub-signature-256"];

function aBody(): Buffer {
  switch (randomInt(8)) {
    case 0:
      return randomBytes(randomInt(60));
    case 1:
      return Buffer.from("");
    case 2:
      return Buffer.from(pick(["[1,]", "{}{}", "\ufeff{}", "nul", "'x'", '"\u0000"', "01"]));
    case 3:
      return oneIn(30) ? Buffer.alloc(262_145, "1") : Buffer.from("1");
    default:
      return Buffer.from(
        JSON.stringify({
          id: randomBytes(6).toString("hex"),
          list: Array.from({ length: randomInt(5) }, () => randomInt(9)),
        }),
      );
  }
}

/** Returns whether a body is JSON, independently of the code under test. */
export function isJsonText(body: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body));
    return true;
  } catch {
    return false;
  }
}
