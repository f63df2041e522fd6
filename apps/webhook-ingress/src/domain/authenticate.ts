import { sameText } from "./constant-time.ts";
import { SCHEMES, type SignedRequest } from "./signature-schemes.ts";
import type { AuthMode, WebhookAuth } from "./webhook.ts";

/** The parts of a request that are available before its body is read. */
export type Credentials = {
  readonly header: (name: string) => string | undefined;
  /** The path segment after the webhook's uid, decoded. */
  readonly token: string | undefined;
};

/**
 * Verifiers of modes that need no body. Each mode accepts only its own mechanism: a token in the path of a bearer
 * webhook is a wrong credential, and so is a bearer token for a url_token webhook without the path segment.
 */
const TOKEN_MODES: Readonly<Record<Exclude<AuthMode, "signature">, (request: Credentials, secret: string) => boolean>> =
  {
    token: ({ header, token }, secret) =>
      token === undefined && sameText(/^bearer +(\S+) *$/i.exec(header("authorization") ?? "")?.[1] ?? "", secret),
    url_token: ({ token }, secret) => sameText(token ?? "", secret),
  };

/** Returns whether the token is right. A webhook without a secret rejects every token. */
export const isTokenValid = (
  mode: Exclude<AuthMode, "signature">,
  request: Credentials,
  secret: string | undefined,
): boolean => secret !== undefined && secret !== "" && TOKEN_MODES[mode](request, secret);

/** Returns whether the body is signed with the secret. */
export function isSignatureValid(
  auth: WebhookAuth,
  request: Credentials & SignedRequest,
  secret: string | undefined,
  now: Date,
): boolean {
  if (secret === undefined || secret === "" || auth.signatureScheme === undefined || request.token !== undefined)
    return false;
  const { signatureHeader, signaturePrefix } = auth;
  return SCHEMES[auth.signatureScheme].verify(request, { secret, now, signatureHeader, signaturePrefix });
}
