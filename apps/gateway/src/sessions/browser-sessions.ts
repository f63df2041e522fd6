import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Vault } from "@millwright/vault";
import type { SessionOperations, SessionToken } from "../identity/index.ts";
import type { RequestSessions } from "../rest/index.ts";
import { sealedCookie } from "./sealed-cookie.ts";

/** Sessions of browsers: a sealed cookie with the token of a session. */
export type BrowserSessions = RequestSessions & {
  /** Returns a `Set-Cookie` value for a session that has started. */
  cookieOf(session: SessionToken): string;
  /** Starts a session with a key, and ends the one in a Cookie header. Returns a `Set-Cookie` value. Errors: key_invalid. */
  signIn(key: string, cookies: string | undefined, requestId: string): Promise<string>;
  /** Ends the session in a Cookie header. Returns a `Set-Cookie` value. */
  signOut(cookies: string | undefined, requestId: string): Promise<string>;
  /** Ends all sessions of the caller. Returns a `Set-Cookie` value. */
  signOutEverywhere(caller: Caller): Promise<string>;
};

/** Returns the sessions of an installation. Browsers never send the cookie with requests of other sites. */
export function browserSessions({
  vault,
  clock,
  publicUrl,
  store,
}: {
  vault: Vault;
  clock: Clock;
  publicUrl: string;
  store: SessionOperations;
}): BrowserSessions {
  const cookie = sealedCookie({ vault, name: "millwright_session", publicUrl, sameSite: "Strict" });
  const cookieOf: BrowserSessions["cookieOf"] = ({ token, expiresAt }) =>
    cookie.set(token, Math.round((expiresAt.getTime() - clock.now().getTime()) / 1000));
  const end = async (cookies: string | undefined, requestId: string): Promise<void> => {
    const token = cookie.read(cookies);
    if (token !== undefined) await store.end(token, requestId);
  };
  return {
    credential: cookie.read,
    cookieOf,
    async signIn(key, cookies, requestId) {
      const session = await store.startWithKey(key, requestId);
      await end(cookies, requestId);
      return cookieOf(session);
    },
    async signOut(cookies, requestId) {
      await end(cookies, requestId);
      return cookie.clear;
    },
    async signOutEverywhere(caller) {
      await store.endAll(caller);
      return cookie.clear;
    },
    async renewedCookie(caller) {
      const session = await store.rotate(caller);
      return session && cookieOf(session);
    },
  };
}
