import { z } from "zod";
import { ERROR_CATALOG, html, pathText, route, type Route } from "../../rest/index.ts";

/** The page that `type` of a problem body links to: one short page per error code of the public catalog. */
export const aboutErrorsRoute: Route = route({
  method: "GET",
  path: "/errors/{code}",
  root: true,
  auth: "none",
  summary: "Describe an error code",
  params: z.object({ code: pathText("error_code", new RegExp(`^(${Object.keys(ERROR_CATALOG).join("|")})$`)) }),
  handler: async ({ params: { code } }) => {
    const { title, about } = ERROR_CATALOG[code] as { title: string; about: string };
    return html(
      200,
      `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>` +
        `<style>body{font:16px/1.5 system-ui;max-width:40rem;margin:4rem auto;padding:0 1rem}</style>` +
        `<h1>${title}</h1><p><code>${code}</code></p><p>${about}</p></html>`,
      { "cache-control": "public, max-age=3600" },
    );
  },
});
