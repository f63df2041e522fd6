import { z } from "zod";
import type { Clock } from "@millwright/clock";
import { ERROR_KINDS, isDomainError, notFound } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import type { Vault } from "@millwright/vault";
import type { ProviderChecks, ProviderSignIn } from "../identity/index.ts";
import { signedInPage, signInProblemPage } from "../pages/sign-in.ts";
import { html, queryFlag, redirect, route, type Reply, type Route } from "../rest/index.ts";
import type { BrowserSessions } from "./browser-sessions.ts";
import { returnPath } from "./return-path.ts";
import { sealedCookie } from "./sealed-cookie.ts";

const VALID_SECONDS = 600;
export const PROVIDER_PATH = "/session/oidc";

/** What the browser stores while the person is at the provider. */
type Pending = {
  readonly checks: ProviderChecks;
  /** The page to open afterwards. */
  readonly next: string;
  /** The account to connect. Absent for a sign-in. */
  readonly connectTo?: string | undefined;
  readonly expiresAt: number;
};

/**
 * Returns the routes by which a browser signs in with the provider. What must be remembered in between is in a sealed
 * cookie, so a response is only accepted by the browser that started the sign-in, for ten minutes. The cookie is
 * `SameSite=Lax`, because the provider leads back from another site.
 */
export function providerRoutes({
  provider,
  sessions,
  vault,
  clock,
  log,
  publicUrl,
}: {
  provider: ProviderSignIn | undefined;
  sessions: BrowserSessions;
  vault: Vault;
  clock: Clock;
  log: Logger;
  publicUrl: string;
}): Route[] {
  const pendingCookie = sealedCookie({ vault, name: "millwright_sign_in", publicUrl, sameSite: "Lax" });
  const problem = (status: number, message: string, next = "/"): Reply =>
    html(status, signInProblemPage(message, next), { "set-cookie": pendingCookie.clear });
  return [
    route({
      method: "GET",
      path: PROVIDER_PATH,
      root: true,
      auth: "none",
      summary: "Sign in with the provider, or connect its account to the signed-in person",
      query: z.object({
        next: z.string().max(2000).optional(),
        again: queryFlag(false, "The provider asks for credentials even if the person is signed in there."),
        connect: queryFlag(false, "Connects the provider's account to the signed-in person."),
      }),
      handler: async ({ query, request }) => {
        if (!provider) throw notFound("path");
        const next = returnPath(query.next);
        let connectTo: string | undefined;
        try {
          if (query.connect) connectTo = provider.accountToConnect(await request.authenticateAgain());
        } catch (error) {
          const [status, message] = explain(error);
          return problem(status, message, next);
        }
        const started = await provider.begin({ askAgain: query.again }).catch((error: unknown) => {
          log.warn({ component: "sign-in", error }, "the provider cannot be used");
          return undefined;
        });
        if (!started) return problem(503, UNAVAILABLE, next);
        const expiresAt = clock.now().getTime() + VALID_SECONDS * 1000;
        const pending: Pending = { checks: started.checks, next, connectTo, expiresAt };
        return redirect(started.url, { "set-cookie": pendingCookie.set(JSON.stringify(pending), VALID_SECONDS) });
      },
    }),
    route({
      method: "GET",
      path: `${PROVIDER_PATH}/callback`,
      root: true,
      auth: "none",
      summary: "The response of the provider",
      handler: async ({ request: { raw, headers, requestId } }) => {
        if (!provider) throw notFound("path");
        const pending = pendingOf(pendingCookie.read(headers.cookie));
        if (!pending || pending.expiresAt <= clock.now().getTime())
          return problem(
            400,
            "This sign-in was started in another browser, is already complete, or took too long. Start again.",
          );
        const { checks, next, connectTo } = pending;
        try {
          const query = new URL(raw.req.url!, "http://localhost").search;
          const session = await provider.complete(query, checks, { requestId, connectTo });
          return html(200, signedInPage(next), {
            "set-cookie": [sessions.cookieOf(session), pendingCookie.clear],
            // A redirect would be part of the navigation from the provider, in which browsers omit the session's cookie.
            refresh: `0; url=${next}`,
          });
        } catch (error) {
          if (!isDomainError(error))
            log.warn({ component: "sign-in", error }, "a response of the provider was refused");
          const [status, message] = explain(error);
          return problem(status, message, next);
        }
      },
    }),
  ];
}

const pendingOf = (text: string | undefined): Pending | undefined =>
  text === undefined ? undefined : (JSON.parse(text) as Pending);

const UNAVAILABLE = "The sign-in provider does not respond. Try again in a moment, or sign in with an API key.";

/** Returns the status and the sentences for an error of identity or of openid-client. */
function explain(error: unknown): [status: number, message: string] {
  if (isDomainError(error)) return [ERROR_KINDS[error.kind].status, error.message];
  const { code, error: reason, cause } = error as { code?: string; error?: string; cause?: unknown };
  if (reason === "access_denied")
    return [403, "The sign-in was cancelled, or the provider does not permit you to use this platform."];
  const isFailure = cause instanceof Response && cause.status >= 500;
  if (isFailure || code === "OAUTH_TIMEOUT" || error instanceof TypeError) return [503, UNAVAILABLE];
  return [
    400,
    "The response of the sign-in provider is not valid. Start again. If it fails again, report it to the operator of this platform.",
  ];
}
