import { createHash } from "node:crypto";
import { get, type IncomingHttpHeaders } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startRestApi, PUBLIC_URL, type RestApi } from "./support/rest-api.ts";

let api: RestApi;
let page: { status: number; headers: Headers; body: any };
beforeAll(async () => {
  api = await startRestApi();
  page = await api.call("GET", "/docs", { key: null });
});
afterAll(() => api.close());

/** Sends a request without decoding the response. */
const raw = (path: string, headers: Record<string, string> = {}) =>
  new Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: Buffer }>((resolve, reject) => {
    get(
      `${api.url}${path}`,
      { headers },
      (answer) =>
        void buffer(answer).then(
          (body) => resolve({ status: answer.statusCode, headers: answer.headers, body }),
          reject,
        ),
    ).on("error", reject);
  });

const assets = (): string[] =>
  [...(page.body as string).matchAll(/<(?:script defer src|link rel="stylesheet" href)="([^"]+)"/g)].map(
    ([, path]) => path!,
  );
const contentTypes: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

test("the reference is public and revalidated on every request", () => {
  expect([page.status, page.headers.get("content-type"), page.headers.get("cache-control")]).toEqual([
    200,
    "text/html; charset=utf-8",
    "no-cache",
  ]);
  expect(page.body).toContain("<title>API reference");
});

test("nothing on it comes from another host or is inline, and its policy allows nothing else", async () => {
  const policy = Object.fromEntries(
    page.headers
      .get("content-security-policy")!
      .split(";")
      .map((directive) => directive.trim().split(/ (.*)/)),
  );
  expect(policy).toEqual({
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
  });
  const links = [...(page.body as string).matchAll(/\b(?:src|href|[\w-]*-url)="([^"]*)"/g)].map(([, link]) => link!);
  expect(links.filter((link) => !/^(?:\/(?!\/)|data:,)/.test(link))).toEqual([]);
  // in the example
  expect([...(page.body as string).matchAll(/https?:\/\/[^/\s<"]+/g)].map(([host]) => host)).toEqual([PUBLIC_URL]);
  expect(page.body).not.toMatch(/<style|<script(?! defer src)|\bstyle=|\bon\w+=/);
  const script = await raw(assets().find((path) => path.startsWith("/docs/docs-") && path.endsWith(".js"))!);
  const document = /fetch\("([^"]+)"\)/.exec(script.body.toString())![1]!;
  expect((await api.call("GET", document, { key: null })).body.openapi).toBe("3.1.0");
});

test("its assets are named by their content, cached permanently and compressed", async () => {
  expect(assets()).toHaveLength(4);
  for (const path of assets()) {
    const plain = await raw(path);
    expect([plain.status, plain.headers["content-type"], plain.headers["content-encoding"]]).toEqual([
      200,
      contentTypes[path.split(".").at(-1)!],
      undefined,
    ]);
    expect(path).toContain(createHash("sha256").update(plain.body).digest("hex").slice(0, 16));
    for (const [accepted, isZipped] of [
      ["br, gzip", true],
      ["gzip;q=0.5", true],
      ["gzip;q=0", false],
      ["identity", false],
    ] as const) {
      const { headers, body } = await raw(path, { "accept-encoding": accepted });
      expect([headers["content-encoding"], headers["vary"], headers["cache-control"]]).toEqual([
        isZipped ? "gzip" : undefined,
        "accept-encoding",
        "public, max-age=31536000, immutable",
      ]);
      expect((isZipped ? gunzipSync(body) : body).equals(plain.body)).toBe(true);
    }
  }
});

test.each(["/docs/viewer-0000000000000000.js", "/docs/viewer.js", "/docs/..%2f..%2fpackage.json"])(
  "there is nothing else: %s",
  async (path) => {
    expect((await api.call("GET", path, { key: null })).status).toBe(404);
  },
);
