import { z } from "zod";
import { notFound } from "@millwright/errors";
import { html, pathText, Reply, route, type Route } from "../rest/index.ts";
import { acceptsEncoding } from "./accepts-encoding.ts";
import { docsAssets, type DocsAssets } from "./docs-assets.ts";
import { Markup, markup } from "./markup.ts";

/**
 * Allows scripts, fonts and requests of this server only. Inline styles are allowed because the viewer sets them on its
 * elements.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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
      summary: "A script of the reference page",
      params: z.object({ asset: pathText("asset", /^[a-z]+-[0-9a-f]{16}\.js$/) }),
      handler: async ({ params, request }) => {
        const asset = (await assets()).find(({ name }) => name === params.asset);
        if (!asset) throw notFound("asset");
        const isZipped = acceptsEncoding(request.headers, "gzip");
        return new Reply(200, isZipped ? asset.zipped : asset.plain, {
          "content-type": "text/javascript; charset=utf-8",
          "cache-control": CACHE_FOREVER,
          vary: "accept-encoding",
          ...(isZipped ? { "content-encoding": "gzip" } : {}),
        });
      },
    }),
  ];
}

const STYLE = new Markup(`<style>
:root { color-scheme: light dark; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; }
rapi-doc { --font-regular: system-ui, sans-serif; }
.overview { max-width: 46rem; line-height: 1.55; }
.overview pre { overflow-x: auto; padding: .7rem .9rem; border-radius: 6px; background: #8882; font: 13px/1.5 ui-monospace, monospace; }
.overview code { font-family: ui-monospace, monospace; font-size: .92em; }
.name { font-size: 1.25rem; font-weight: 650; padding: .4rem .6rem .2rem; }
.name a { color: inherit; text-decoration: none; }
</style>`);

const docsPage = (assets: DocsAssets, publicUrl: string): string =>
  `<!doctype html>${
    markup`<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>API reference · Millwright</title><link rel="icon" href="data:,">${STYLE}
${assets.map(({ name }) => markup`<script type="module" src="/docs/${name}"></script>`)}</head><body>
<rapi-doc spec-url="/api/v1/openapi.json" render-style="read" layout="row" schema-style="table" load-fonts="false"
 regular-font="system-ui, sans-serif" mono-font="ui-monospace, monospace" font-size="default" nav-item-spacing="compact"
 show-header="false" allow-server-selection="false" allow-spec-url-load="false" allow-spec-file-load="false" show-method-in-nav-bar="as-colored-text"
 use-path-in-nav-bar="false" persist-auth="false" sort-tags="false" schema-description-expanded="true" default-schema-tab="schema">
<div slot="nav-logo" class="name"><a href="/">Millwright</a></div>
<div slot="overview" class="overview"><p>Send an API key as <code>Authorization: Bearer …</code>. Errors are
<code>application/problem+json</code> with a stable <code>reason</code>; lists are walked by <code>page_info.next_cursor</code>; creates take an
<code>Idempotency-Key</code>. With a key below, requests can be tried here.</p>
<pre>curl ${publicUrl}/api/v1/agent/runs \\
  -H "Authorization: Bearer $MILLWRIGHT_API_KEY" -H "Content-Type: application/json" \\
  -d '{"prompt": "The tests fail. Please have it fixed."}'</pre></div>
</rapi-doc>
<noscript>This page is drawn by a script. The same information is in <a href="/api/v1/openapi.json">/api/v1/openapi.json</a>.</noscript></body></html>`
      .text
  }`;
