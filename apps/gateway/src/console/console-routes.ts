import { z } from "zod";
import { notFound } from "@millwright/errors";
import { pathText, route, type Route } from "../rest/index.ts";
import type { ConsoleSite } from "./console-site.ts";

/** Returns the routes of the console. It is also served at paths that no route has: `navigationPage` of the REST app. */
export function consoleRoutes(site: ConsoleSite): Route[] {
  return [
    route({ method: "GET", path: "/", root: true, auth: "none", summary: "The console", handler: site.page }),
    route({
      method: "GET",
      path: "/assets/{asset}",
      root: true,
      auth: "none",
      summary: "A file of the console",
      params: z.object({ asset: pathText("asset", /^[\w-]+(?:\.[\w-]+)+$/) }),
      handler: async ({ params, request }) => {
        const reply = await site.asset(params.asset, request.headers);
        if (!reply) throw notFound("asset");
        return reply;
      },
    }),
  ];
}
