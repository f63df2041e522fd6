import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { get, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { openGateway, type TestGateway } from "./support/gateway.ts";

let g: TestGateway;
let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "millwright-console-"));
  g = await openGateway({ consoleDir: dir });
});
afterAll(async () => {
  await g.close();
  await rm(dir, { recursive: true });
});

const navigate = (path: string) => raw(path, { accept: "text/html,application/xhtml+xml" });
const raw = (path: string, headers: Record<string, string>) =>
  new Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: string }>((resolve, reject) => {
    get(
      `${g.api.url}${path}`,
      { headers },
      (answer) =>
        void buffer(answer).then(
          (body) => resolve({ status: answer.statusCode, headers: answer.headers, body: body.toString() }),
          reject,
        ),
    ).on("error", reject);
  });

test("states that it is being built and reloads, and how to find out why the build failed", async () => {
  const building = await navigate("/");
  expect([building.status, building.headers["refresh"]]).toEqual([503, "2"]);
  await writeFile(join(dir, "build-error.txt"), "x");
  const failed = await navigate("/");
  expect([failed.status, failed.headers["refresh"]]).toEqual([503, undefined]);
  expect(failed.body).toContain("npm run build:console");
});

describe("a built console", () => {
  beforeAll(async () => {
    await mkdir(join(dir, "assets"));
    await writeFile(join(dir, "index.html"), "<title>console</title>");
    await writeFile(join(dir, "assets/index-abc_1.js"), "plain");
    await writeFile(join(dir, "assets/index-abc_1.js.gz"), "zipped");
    await writeFile(join(dir, "assets/index-abc_1.js.br"), "brotli");
    await writeFile(join(dir, "assets/icon-abc.svg"), "<svg/>");
  });

  test.each(["/", "/work", "/factories/x/y", "/runs"])("is the page of %s", async (path) => {
    const { status, headers, body } = await navigate(path);
    expect([status, body, headers["cache-control"]]).toEqual([200, "<title>console</title>", "no-cache"]);
    expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; /);
    expect(headers["content-security-policy"]).not.toMatch(/unsafe|https?:|\*/);
  });

  test.each([
    "/api/v1/nothing",
    "/docs/nothing",
    "/errors",
    "/assets/nothing-1.js",
    "/blobs/x",
    "/webhooks/x",
    "/rpc/x",
    "/session/x",
  ])("is not the page of %s", async (path) =>
    expect((await navigate(path)).headers["content-type"]).toBe("application/problem+json"),
  );

  test("is served to navigations only", async () => {
    expect((await raw("/work", { accept: "application/json" })).status).toBe(404);
    expect((await g.api.call("POST", "/work", { headers: { accept: "text/html" } })).status).toBe(404);
  });

  test.each([
    ["br, gzip", "br", "brotli"],
    ["gzip", "gzip", "zipped"],
    ["br;q=0, gzip", "gzip", "zipped"],
    ["identity", undefined, "plain"],
  ])("serves assets for ever, compressed for %s", async (accepted, coding, content) => {
    const { headers, body } = await raw("/assets/index-abc_1.js", { "accept-encoding": accepted });
    expect([headers["content-encoding"], body]).toEqual([coding, content]);
    expect(headers).toMatchObject({
      "cache-control": "public, max-age=31536000, immutable",
      "content-type": "text/javascript; charset=utf-8",
      vary: "accept-encoding",
    });
  });

  test("serves an asset that is not compressed, and nothing outside of its directory", async () => {
    expect((await raw("/assets/icon-abc.svg", { "accept-encoding": "br" })).body).toBe("<svg/>");
    for (const path of ["/assets/..%2Findex.html", "/assets/%2e%2e/index.html", "/assets/index-abc_1.js.br"])
      expect((await raw(path, {})).status).toBe(404);
  });
});
