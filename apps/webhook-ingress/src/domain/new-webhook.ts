import { HEADER_NAME, isCredentialHeader, WEBHOOK_AUTH_MODES } from "@millwright/definition";
import { invalidArgument } from "@millwright/errors";
import { ALL_SIGNATURE_SCHEMES, type SignatureScheme } from "./signature-schemes.ts";
import type { WebhookAuth, WebhookSettings } from "./webhook.ts";

const NAME_CHARACTERS_MAX = 100;

/** As it is asked for: empty texts are absent. */
export type AskedAuth = {
  authMode: string;
  signatureScheme: string;
  signatureHeader: string;
  signaturePrefix: string;
  secretName: string;
};

/** How senders will prove themselves. Errors: invalid_webhook. */
export function readAuth(asked: AskedAuth): WebhookAuth {
  const authMode = oneOf(WEBHOOK_AUTH_MODES, asked.authMode || "token", "auth_mode");
  const given = {
    signatureHeader: asked.signatureHeader || undefined,
    signaturePrefix: asked.signaturePrefix || undefined,
    secretName: asked.secretName || undefined,
  };
  if (authMode !== "signature") {
    if (asked.signatureScheme || given.signatureHeader || given.signaturePrefix)
      throw invalid("signature_scheme", "belongs to webhooks whose auth_mode is signature");
    return { ...given, authMode, signatureScheme: undefined };
  }
  if (!asked.signatureScheme) throw invalid("signature_scheme", "is required when auth_mode is signature");
  const signatureScheme = oneOf(ALL_SIGNATURE_SCHEMES, asked.signatureScheme, "signature_scheme");
  checkGeneric(signatureScheme, given);
  return { ...given, authMode, signatureScheme };
}

function checkGeneric(
  scheme: SignatureScheme,
  { signatureHeader, signaturePrefix }: Pick<WebhookAuth, "signatureHeader" | "signaturePrefix">,
): void {
  const isGeneric = scheme === "generic_hmac_sha256";
  if (!isGeneric && (signatureHeader !== undefined || signaturePrefix !== undefined))
    throw invalid("signature_header", "belongs to generic_hmac_sha256");
  if (isGeneric && signatureHeader === undefined)
    throw invalid("signature_header", "is required with generic_hmac_sha256");
  if (signatureHeader !== undefined && !HEADER_NAME.test(signatureHeader))
    throw invalid("signature_header", "is not the name of a header");
  if (signaturePrefix !== undefined && !/^[\x21-\x7e]{1,100}$/.test(signaturePrefix))
    throw invalid("signature_prefix", "has visible ASCII characters only, at most 100");
}

/** Errors: invalid_webhook. */
export function readSettings(
  asked: { name: string; deliveryIdHeader: string; enabled: boolean },
  auth?: Pick<WebhookAuth, "signatureHeader">,
): WebhookSettings {
  const name = asked.name.trim();
  if (name === "" || name.length > NAME_CHARACTERS_MAX)
    throw invalid("name", `has 1 to ${NAME_CHARACTERS_MAX} characters`);
  const deliveryIdHeader = asked.deliveryIdHeader || undefined;
  if (deliveryIdHeader !== undefined) {
    if (!HEADER_NAME.test(deliveryIdHeader)) throw invalid("delivery_id_header", "is not the name of a header");
    if (isCredentialHeader(deliveryIdHeader) || deliveryIdHeader.toLowerCase() === auth?.signatureHeader?.toLowerCase())
      throw invalid("delivery_id_header", "names a header that carries a credential");
  }
  return { name, deliveryIdHeader, enabled: asked.enabled };
}

function oneOf<const T extends string>(values: readonly T[], text: string, field: string): T {
  const found = values.find((value) => value === text);
  if (found === undefined) throw invalid(field, `is one of ${values.join(", ")}`);
  return found;
}

const invalid = (field: string, what: string): Error =>
  invalidArgument("invalid_webhook", `${field} ${what}.`, { field });
