import { randomBytes } from "node:crypto";
import { invalidArgument } from "@millwright/errors";
import { SCHEMES } from "./signature-schemes.ts";
import type { WebhookAuth } from "./webhook.ts";

const BYTES = 32;
const CHARACTERS_MAX = 4096;
const URL_SAFE = /^[A-Za-z0-9._~-]+$/;

/** A new secret for a webhook that can have one of ours; undefined where only the provider can say it (decisions "blank signature secret"). */
export function generateSecret({
  authMode,
  signatureScheme,
}: Pick<WebhookAuth, "authMode" | "signatureScheme">): string | undefined {
  const bytes = randomBytes(BYTES);
  if (authMode !== "signature") return bytes.toString("base64url");
  return signatureScheme === "standard_webhooks" ? `whsec_${bytes.toString("base64")}` : undefined;
}

/** Refuses a text that cannot be this webhook's secret. Errors: invalid_secret; the text itself is never repeated. */
export function checkSecret(
  { authMode, signatureScheme }: Pick<WebhookAuth, "authMode" | "signatureScheme">,
  secret: string,
): void {
  if (secret === "" || secret.length > CHARACTERS_MAX)
    throw invalidSecret(`A secret has 1 to ${CHARACTERS_MAX} characters.`);
  if (authMode === "url_token" && !URL_SAFE.test(secret))
    throw invalidSecret("The secret of a url_token webhook has letters, digits, dot, underscore, tilde and dash only.");
  if (authMode === "token" && !/^[\x21-\x7e]+$/.test(secret))
    throw invalidSecret("A bearer token has visible ASCII characters only.");
  if (signatureScheme !== undefined && !SCHEMES[signatureScheme].takesSecret(secret))
    throw invalidSecret("The secret of a Standard Webhooks sender is whsec_ and base64.");
}

const invalidSecret = (message: string): Error => invalidArgument("invalid_secret", message);
