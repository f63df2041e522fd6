import { z } from "zod";
import { assertSameOrigin, Reply, route, type Authenticate, type Route } from "../rest/index.ts";
import type { BrowserSessions } from "./browser-sessions.ts";

/** Returns the routes by which the console signs in and out. They accept requests of this server's pages only. */
export function sessionRoutes({
  authenticate,
  sessions,
  publicUrl,
}: {
  authenticate: Authenticate;
  sessions: BrowserSessions;
  publicUrl: string;
}): Route[] {
  return [
    route({
      method: "POST",
      path: "/session",
      root: true,
      auth: "none",
      summary: "Start a browser session with an API key",
      body: z.object({ key: z.string().min(1).max(1000) }),
      handler: async ({ body: { key }, request }) => {
        assertSameOrigin(request.headers, publicUrl);
        await authenticate({ bearer: key.trim(), teamUid: undefined, requestId: request.requestId });
        return new Reply(204, null, { "set-cookie": sessions.cookie(key.trim()) });
      },
    }),
    route({
      method: "DELETE",
      path: "/session",
      root: true,
      auth: "none",
      summary: "End the browser session",
      handler: async ({ request }) => {
        assertSameOrigin(request.headers, publicUrl);
        return new Reply(204, null, { "set-cookie": sessions.endCookie });
      },
    }),
  ];
}
