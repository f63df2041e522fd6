import { randomBytes } from "node:crypto";
import { invalidArgument } from "@millwright/errors";
import { SCHEMES } from "./signature-schemes.ts";
import type { WebhookAuth } from "./webhook.ts";

const BYTES = 32;
const CHARACTERS_MAX = 4096;
const URL_SAFE = /^[A-Za-z0-9._~-]+$/;

/** Returns a new secret for a webhook; undefined if only the provider can issue it. */
export function generateSecret({
  authMode,
  signatureScheme,
}: Pick<WebhookAuth, "authMode" | "signatureScheme">): string | undefined {
  const bytes = randomBytes(BYTES);
  if (authMode !== "signature") return bytes.toString("base64url");
  return signatureScheme === "standard_webhooks" ? `whsec_${bytes.toString("base64")}` : undefined;
}

/** Throws `invalid_secret` for a text that cannot be this webhook's secret. The message never contains the text. */
export function checkSecret(
  { authMode, signatureScheme }: Pick<WebhookAuth, "authMode" | "signatureScheme">,
  secret: string,
): void {
  if (secret === "" || secret.length > CHARACTERS_MAX)
    throw invalidSecret(`secret must have 1 to ${CHARACTERS_MAX} characters (got ${secret.length}).`);
  if (authMode === "url_token" && !URL_SAFE.test(secret))
    throw invalidSecret(
      "The secret of a url_token webhook must consist of letters, digits, dots, underscores, tildes and dashes.",
    );
  if (authMode === "token" && !/^[\x21-\x7e]+$/.test(secret))
    throw invalidSecret("A bearer token must consist of visible ASCII characters.");
  if (signatureScheme !== undefined && !SCHEMES[signatureScheme].takesSecret(secret))
    throw invalidSecret("The secret of a standard_webhooks webhook must be base64 after the prefix whsec_.");
}

const invalidSecret = (message: string): Error => invalidArgument("invalid_secret", message);
