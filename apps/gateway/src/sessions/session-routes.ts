import { z } from "zod";
import { assertSameOrigin, queryFlag, Reply, route, type Route } from "../rest/index.ts";
import { PROVIDER_PATH } from "./provider-routes.ts";
import type { BrowserSessions } from "./browser-sessions.ts";

const SignInOptions = z.object({ provider: z.object({ label: z.string(), path: z.string() }).optional() });

/** Returns the routes by which the console signs in and out. They accept writes of this server's pages only. */
export function sessionRoutes({
  sessions,
  publicUrl,
  providerLabel,
}: {
  sessions: BrowserSessions;
  publicUrl: string;
  /** Name of the provider. Absent without one. */
  providerLabel: string | undefined;
}): Route[] {
  return [
    route({
      method: "GET",
      path: "/session",
      root: true,
      auth: "none",
      summary: "The ways to sign in",
      response: SignInOptions,
      handler: async () =>
        providerLabel === undefined ? {} : { provider: { label: providerLabel, path: PROVIDER_PATH } },
    }),
    route({
      method: "POST",
      path: "/session",
      root: true,
      auth: "none",
      summary: "Start a browser session with an API key",
      body: z.object({ key: z.string().min(1).max(1000) }),
      handler: async ({ body: { key }, request: { headers, requestId } }) => {
        assertSameOrigin(headers, publicUrl);
        return new Reply(204, null, { "set-cookie": await sessions.signIn(key.trim(), headers.cookie, requestId) });
      },
    }),
    route({
      method: "DELETE",
      path: "/session",
      root: true,
      auth: "none",
      summary: "End the browser session, or all sessions of its person",
      query: z.object({ everywhere: queryFlag(false, "Ends all sessions of the person.") }),
      handler: async ({ query, request }) => {
        const { headers, requestId } = request;
        assertSameOrigin(headers, publicUrl);
        const cookie = query.everywhere
          ? await sessions.signOutEverywhere(await request.authenticateAgain())
          : await sessions.signOut(headers.cookie, requestId);
        return new Reply(204, null, { "set-cookie": cookie });
      },
    }),
  ];
}
