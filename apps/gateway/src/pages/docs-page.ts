import { z } from "zod";
import { notFound } from "@millwright/errors";
import { html, pathText, Reply, route, type Route } from "../rest/index.ts";
import { acceptsEncoding } from "./accepts-encoding.ts";
import { docsAssets, type DocsAssets } from "./docs-assets.ts";
import { markup } from "./markup.ts";

/** Allows scripts, styles and requests of this server only, and nothing inline except pictures in style sheets. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const CACHE_FOREVER = "public, max-age=31536000, immutable";

/**
 * Returns the routes of `/docs`: the reference of the public API, rendered in the browser from `/api/v1/openapi.json`.
 * Nothing is loaded from other servers.
 */
export function docsRoutes({ publicUrl }: { publicUrl: string }): Route[] {
  const assets = docsAssets();
  return [
    route({
      method: "GET",
      path: "/docs",
      root: true,
      auth: "none",
      summary: "Reference of the public API",
      handler: async () =>
        html(200, docsPage(await assets(), publicUrl), {
          "content-security-policy": POLICY,
          "cache-control": "no-cache",
        }),
    }),
    route({
      method: "GET",
      path: "/docs/{asset}",
      root: true,
      auth: "none",
      summary: "A script or style sheet of the reference page",
      params: z.object({ asset: pathText("asset", /^[a-z]+-[0-9a-f]{16}\.(?:js|css)$/) }),
      handler: async ({ params, request }) => {
        const asset = (await assets()).find(({ name }) => name === params.asset);
        if (!asset) throw notFound("asset");
        const isZipped = acceptsEncoding(request.headers, "gzip");
        return new Reply(200, isZipped ? asset.zipped : asset.plain, {
          "content-type": asset.contentType,
          "cache-control": CACHE_FOREVER,
          vary: "accept-encoding",
          ...(isZipped ? { "content-encoding": "gzip" } : {}),
        });
      },
    }),
  ];
}

const docsPage = (assets: DocsAssets, publicUrl: string): string =>
  `<!doctype html>${
    markup`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference · Millwright</title><link rel="icon" href="data:,">
${assets.map(({ name }) =>
  name.endsWith(".css")
    ? markup`<link rel="stylesheet" href="/docs/${name}">`
    : markup`<script defer src="/docs/${name}"></script>`,
)}</head><body>
<header><h1><a href="/">Millwright</a> API</h1>
<p>Send an API key as <code>Authorization: Bearer …</code>. Errors are <code>application/problem+json</code> with a stable
<code>reason</code>. Lists have a <code>page_info.next_cursor</code>. Creates accept an <code>Idempotency-Key</code>. With a key
(Authorize), requests can be sent from this page.</p>
<pre>curl ${publicUrl}/api/v1/agent/runs \\
  -H "Authorization: Bearer $MILLWRIGHT_API_KEY" -H "Content-Type: application/json" \\
  -d '{"prompt": "The tests fail. Fix them."}'</pre></header>
<main id="reference"></main>
<noscript>This page needs JavaScript. The same information is in <a href="/api/v1/openapi.json">/api/v1/openapi.json</a>.</noscript></body></html>`
      .text
  }`;
