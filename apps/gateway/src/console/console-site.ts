import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { IncomingHttpHeaders } from "node:http";
import { acceptsEncoding } from "../pages/accepts-encoding.ts";
import { page } from "../pages/layout.ts";
import { markup } from "../pages/markup.ts";
import { html, Reply } from "../rest/index.ts";

export const CONSOLE_DIR = fileURLToPath(new URL("../../../console/dist", import.meta.url));

/** Allows the console's own files and requests to this server only; images also from memory. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const CACHE_FOREVER = "public, max-age=31536000, immutable";
const RELOAD_SECONDS = 2;

const TYPES: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** Serves the files of the built console. `apps/console/build.mjs` writes `index.html` last. */
export type ConsoleSite = {
  /** Returns the console's page, or while it is being built, a page that reloads. */
  readonly page: () => Promise<Reply>;
  /** Returns a file whose name contains a hash of its content, or undefined if there is none. */
  asset(name: string, headers: IncomingHttpHeaders): Promise<Reply | undefined>;
};

/** Returns the site of a directory that the build can change at any time. */
export function consoleSite(dir: string): ConsoleSite {
  return {
    async page() {
      const index = await contentOf(join(dir, "index.html"));
      if (index)
        return html(200, index.toString("utf8"), {
          "content-security-policy": POLICY,
          "cache-control": "no-cache",
          "cross-origin-opener-policy": "same-origin",
        });
      const hasFailed = await stat(join(dir, "build-error.txt")).catch(() => undefined);
      return hasFailed ? html(503, failedPage) : html(503, buildingPage, { refresh: String(RELOAD_SECONDS) });
    },
    async asset(name, headers) {
      const type = TYPES[name.slice(name.lastIndexOf(".") + 1)];
      if (type === undefined) return undefined;
      const path = join(dir, "assets", name);
      const coding = (["br", "gzip"] as const).find((each) => acceptsEncoding(headers, each));
      const encoded = coding && (await contentOf(`${path}.${coding === "br" ? "br" : "gz"}`));
      const content = encoded ?? (await contentOf(path));
      if (!content) return undefined;
      return new Reply(200, content, {
        "content-type": type,
        "cache-control": CACHE_FOREVER,
        vary: "accept-encoding",
        ...(encoded && coding ? { "content-encoding": coding } : {}),
      });
    },
  };
}

const contentOf = (path: string): Promise<Buffer | undefined> => readFile(path).catch(() => undefined);

const buildingPage = page(
  "Console",
  markup`<h1>The console is being built</h1><p>This page reloads when it is ready, usually in less than a minute. The public API is
available already: <a href="/docs">/docs</a>.</p>`,
);

const failedPage = page(
  "Console",
  markup`<h1>The console could not be built</h1><p>Run <code>npm run build:console</code> to see why. The public API is available:
<a href="/docs">/docs</a>.</p>`,
);
