import { z } from "zod";
import type { SignInLinks } from "../identity/index.ts";
import { linkPage, linkProblemPage } from "../pages/sign-in.ts";
import { assertSameOrigin, html, pathText, Reply, route, type Route } from "../rest/index.ts";
import type { BrowserSessions } from "./browser-sessions.ts";

/**
 * Returns the routes of links that sign a person in once. Opening a link shows a button, so that programs that preview
 * or prefetch it do not use it up.
 */
export function linkRoutes({
  links,
  sessions,
  publicUrl,
}: {
  links: SignInLinks;
  sessions: BrowserSessions;
  publicUrl: string;
}): Route[] {
  const path = "/session/link/{token}";
  const params = z.object({ token: pathText("path", /^[\w-]{20,100}$/) });
  return [
    route({
      method: "GET",
      path,
      root: true,
      auth: "none",
      summary: "Page of a link that signs a person in once",
      params,
      handler: async ({ params: { token } }) => {
        const name = await links.describe(token);
        return name === undefined ? html(404, linkProblemPage) : html(200, linkPage(name));
      },
    }),
    route({
      method: "POST",
      path,
      root: true,
      auth: "none",
      summary: "Sign in with the link",
      params,
      handler: async ({ params: { token }, request: { headers, requestId } }) => {
        assertSameOrigin(headers, publicUrl);
        const session = await links.redeem(token, requestId);
        if (!session) return html(404, linkProblemPage);
        await sessions.signOut(headers.cookie, requestId);
        return new Reply(303, null, { location: "/", "set-cookie": sessions.cookieOf(session) });
      },
    }),
  ];
}
