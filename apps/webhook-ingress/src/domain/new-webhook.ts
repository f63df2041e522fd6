import { HEADER_NAME, isCredentialHeader, WEBHOOK_AUTH_MODES } from "@millwright/definition";
import { invalidArgument } from "@millwright/errors";
import { ALL_SIGNATURE_SCHEMES, type SignatureScheme } from "./signature-schemes.ts";
import type { WebhookAuth, WebhookSettings } from "./webhook.ts";

const NAME_CHARACTERS_MAX = 100;

/** Requested authentication; empty texts are absent. */
export type AuthRequest = {
  authMode: string;
  signatureScheme: string;
  signatureHeader: string;
  signaturePrefix: string;
  secretName: string;
};

/** Returns the validated authentication of senders. Errors: invalid_webhook. */
export function readAuth(input: AuthRequest): WebhookAuth {
  const authMode = oneOf(WEBHOOK_AUTH_MODES, input.authMode || "token", "auth_mode");
  const given = {
    signatureHeader: input.signatureHeader || undefined,
    signaturePrefix: input.signaturePrefix || undefined,
    secretName: input.secretName || undefined,
  };
  if (authMode !== "signature") {
    if (input.signatureScheme || given.signatureHeader || given.signaturePrefix)
      throw invalid("signature_scheme", "requires the auth_mode signature");
    return { ...given, authMode, signatureScheme: undefined };
  }
  if (!input.signatureScheme) throw invalid("signature_scheme", "is required when auth_mode is signature");
  const signatureScheme = oneOf(ALL_SIGNATURE_SCHEMES, input.signatureScheme, "signature_scheme");
  checkGeneric(signatureScheme, given);
  return { ...given, authMode, signatureScheme };
}

function checkGeneric(
  scheme: SignatureScheme,
  { signatureHeader, signaturePrefix }: Pick<WebhookAuth, "signatureHeader" | "signaturePrefix">,
): void {
  const isGeneric = scheme === "generic_hmac_sha256";
  if (!isGeneric && (signatureHeader !== undefined || signaturePrefix !== undefined))
    throw invalid("signature_header", "requires the signature_scheme generic_hmac_sha256");
  if (isGeneric && signatureHeader === undefined)
    throw invalid("signature_header", "is required with generic_hmac_sha256");
  if (signatureHeader !== undefined && !HEADER_NAME.test(signatureHeader))
    throw invalid("signature_header", "must be the name of a header");
  if (signaturePrefix !== undefined && !/^[\x21-\x7e]{1,100}$/.test(signaturePrefix))
    throw invalid("signature_prefix", "must have 1 to 100 visible ASCII characters");
}

/** Returns the validated settings. Errors: invalid_webhook. */
export function readSettings(
  input: { name: string; deliveryIdHeader: string; enabled: boolean },
  auth?: Pick<WebhookAuth, "signatureHeader">,
): WebhookSettings {
  const name = input.name.trim();
  if (name === "" || name.length > NAME_CHARACTERS_MAX)
    throw invalid("name", `must have 1 to ${NAME_CHARACTERS_MAX} characters (got ${name.length})`);
  const deliveryIdHeader = input.deliveryIdHeader || undefined;
  if (deliveryIdHeader !== undefined) {
    if (!HEADER_NAME.test(deliveryIdHeader)) throw invalid("delivery_id_header", "must be the name of a header");
    if (isCredentialHeader(deliveryIdHeader) || deliveryIdHeader.toLowerCase() === auth?.signatureHeader?.toLowerCase())
      throw invalid("delivery_id_header", "must not be a header that carries a credential");
  }
  return { name, deliveryIdHeader, enabled: input.enabled };
}

function oneOf<const T extends string>(values: readonly T[], text: string, field: string): T {
  const found = values.find((value) => value === text);
  if (found === undefined) throw invalid(field, `must be one of ${values.join(", ")}`);
  return found;
}

const invalid = (field: string, rule: string): Error =>
  invalidArgument("invalid_webhook", `${field} ${rule}.`, { field });
