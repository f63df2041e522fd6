import type { Clock } from "@millwright/clock";
import type { Vault } from "@millwright/vault";

const COOKIE = "millwright_session";
const SESSION_SECONDS = 12 * 3600;

/**
 * Sessions of browsers. The cookie contains the sealed credential and its expiry, so the server stores nothing, and the
 * credential is authenticated again on every request.
 */
export type BrowserSessions = {
  /** Returns a `Set-Cookie` value that starts a session with a credential. */
  cookie(credential: string): string;
  /** Returns a `Set-Cookie` value that ends the session. */
  readonly endCookie: string;
  /** Returns the credential of the session in a Cookie header, or undefined without a valid one. */
  readonly credential: (cookies: string | undefined) => string | undefined;
};

/** Returns the sessions of an installation. The cookie is sent to this origin only, and never by other sites' pages. */
export function browserSessions({
  vault,
  clock,
  isHttps,
}: {
  vault: Vault;
  clock: Clock;
  isHttps: boolean;
}): BrowserSessions {
  const attributes = (seconds: number) =>
    `Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${isHttps ? "; Secure" : ""}`;
  return {
    cookie(credential) {
      const expiresAt = clock.now().getTime() + SESSION_SECONDS * 1000;
      return `${COOKIE}=${vault.seal(JSON.stringify({ credential, expiresAt }), COOKIE)}; ${attributes(SESSION_SECONDS)}`;
    },
    endCookie: `${COOKIE}=; ${attributes(0)}`,
    credential(cookies) {
      const sealed = new RegExp(`(?:^|; )${COOKIE}=([^;]+)`).exec(cookies ?? "")?.[1];
      if (!sealed) return undefined;
      try {
        const { credential, expiresAt } = JSON.parse(vault.open(sealed, COOKIE)) as {
          readonly credential: string;
          readonly expiresAt: number;
        };
        return expiresAt > clock.now().getTime() ? credential : undefined;
      } catch {
        return undefined; // sealed by another installation, or changed
      }
    },
  };
}
