import { createHash, randomBytes } from "node:crypto";
import { invalidArgument } from "@millwright/errors";
import type { TeamUid, Uid } from "@millwright/ids";
import { sameText } from "./constant-time.ts";
import { headerIdentity, type Outcome } from "./delivery.ts";
import { SCHEMES, type SignedRequest } from "./signature-schemes.ts";

export type CodeHostUid = Uid<"code_host">;
export type CodeHostDeliveryUid = Uid<"code_host_delivery">;

export const PROVIDERS = ["github", "gitlab"] as const;
export type Provider = (typeof PROVIDERS)[number];

/** The address of one code-host connection. */
export type CodeHostWebhook = {
  readonly codeHostUid: CodeHostUid;
  readonly teamUid: TeamUid;
  readonly provider: Provider;
  /** The platform's account on the code host; "": unknown. */
  readonly botLogin: string;
  readonly enabled: boolean;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly lastDeliveryAt: Date | undefined;
};

/** An entry of a connection's log. Only accepted entries have a body and headers. */
export type CodeHostDelivery = {
  readonly uid: CodeHostDeliveryUid;
  readonly codeHostUid: CodeHostUid;
  readonly teamUid: TeamUid;
  readonly provider: Provider;
  /** From the provider's header; "": absent or not read. */
  readonly event: string;
  /** From the payload; "": absent or not read. */
  readonly action: string;
  readonly deliveryId: string | undefined;
  readonly outcome: Outcome;
  readonly sizeBytes: number;
  readonly receivedAt: Date;
};

export type CodeHostIdentity = { readonly kind: "provider" | "provider_hash" | "event" | "hash"; readonly id: string };

export const codeHostIngressUrl = (base: string, codeHostUid: string): string => `${base}/webhooks/c/${codeHostUid}`;

/** Returns a new secret. GitLab accepts this format both as a secret token and as a signing token. */
export const generateCodeHostSecret = (provider: Provider): string =>
  provider === "gitlab" ? `whsec_${randomBytes(32).toString("base64")}` : randomBytes(32).toString("base64url");

const SECRET = /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/;

/**
 * Throws `invalid_secret` for a text that a code host could not send or sign with. The message never contains the text.
 */
export function checkCodeHostSecret(secret: string): void {
  if (!SECRET.test(secret))
    throw invalidArgument(
      "invalid_secret",
      "secret must have 1 to 4096 visible ASCII characters; spaces are allowed between them.",
    );
}

/** Errors: invalid_code_host_webhook. */
export function checkBotLogin(login: string): string {
  if (login === "" || /^[A-Za-z0-9_][\w.-]{0,254}(?:\[bot\])?$/.test(login)) return login;
  throw invalidArgument(
    "invalid_code_host_webhook",
    `bot_login must be the name of an account, without @ (got "${login.slice(0, 100)}").`,
    {
      field: "bot_login",
    },
  );
}

/** The headers that carry a GitLab signature: the scheme of Standard Webhooks, with the signing token as the key. */
const SIGNATURE = "webhook-signature";

/** Returns whether a request can be rejected before its body is read: GitLab's token is in a header. */
export const isRejectedUnread = (provider: Provider, header: SignedRequest["header"], secret: string): boolean =>
  provider === "gitlab" && header(SIGNATURE) === undefined && !sameText(header("x-gitlab-token") ?? "", secret);

/** Returns whether the sender knows the secret. If a GitLab delivery is signed, only its signature counts. */
export function isCodeHostSender(provider: Provider, request: SignedRequest, secret: string, now: Date): boolean {
  if (secret === "") return false;
  const settings = { secret, now, signatureHeader: undefined, signaturePrefix: undefined };
  if (provider === "github") return SCHEMES.github.verify(request, settings);
  return request.header(SIGNATURE) === undefined
    ? SCHEMES.gitlab.verify(request, settings)
    : SCHEMES.standard_webhooks.takesSecret(secret) && SCHEMES.standard_webhooks.verify(request, settings);
}

/** Returns the deduplication key of a delivery: the provider's own id, which is the same when it retries. */
export function codeHostIdentity(
  provider: Provider,
  header: SignedRequest["header"],
  body: Uint8Array,
): CodeHostIdentity {
  const own = headerIdentity("provider", header(provider === "github" ? "x-github-delivery" : "idempotency-key"));
  if (own) return own;
  const hash = createHash("sha256").update(body).digest("hex");
  // Older GitLabs send only the event's uuid, which events caused by a webhook's own changes share with the first event.
  const event = provider === "gitlab" ? header("x-gitlab-event-uuid")?.trim() : undefined;
  return event !== undefined && /^[\w-]{1,64}$/.test(event)
    ? { kind: "event", id: `${event}:${hash}` }
    : { kind: "hash", id: `sha256:${hash}` };
}

const EVENT_HEADERS: Readonly<Record<Provider, string>> = { github: "x-github-event", gitlab: "x-gitlab-event" };

/** Returns the provider's name of the event; "" if absent. */
export const eventName = (provider: Provider, header: SignedRequest["header"]): string =>
  shownText(header(EVENT_HEADERS[provider]));

const STORED_HEADERS = [
  "content-type",
  "user-agent",
  "x-github-event",
  "x-github-delivery",
  "x-github-hook-id",
  "x-github-hook-installation-target-id",
  "x-github-hook-installation-target-type",
  "x-gitlab-event",
  "x-gitlab-instance",
  "x-gitlab-webhook-uuid",
  "x-gitlab-event-uuid",
  "idempotency-key",
  "webhook-id",
  "webhook-timestamp",
];

/** Returns the headers that are stored with a delivery: those that identify it, never a credential. */
export const storedHeaders = (header: SignedRequest["header"]): Record<string, string> =>
  Object.fromEntries(
    STORED_HEADERS.flatMap((name) =>
      /^[\x20-\x7e]{1,500}$/.test(header(name) ?? "") ? [[name, header(name)!] as const] : [],
    ),
  );

/** Returns the action that the payload names; "" if absent. */
export function actionOf(provider: Provider, payload: unknown): string {
  const of = (value: unknown, name: string): unknown =>
    typeof value === "object" && value !== null && Object.hasOwn(value, name)
      ? (value as Record<string, unknown>)[name]
      : undefined;
  const action = provider === "github" ? of(payload, "action") : of(of(payload, "object_attributes"), "action");
  return typeof action === "string" ? shownText(action) : "";
}

const shownText = (text: string | undefined): string => (/^[\x20-\x7e]{1,100}$/.test(text ?? "") ? text!.trim() : "");
