import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { request as httpRequest } from "node:http";
import { NOW, startRestApi, PUBLIC_URL, type RestApi } from "./support/rest-api.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const KEY = "runs/1/out.txt";
const TEXT = "text/plain";
const path = (signedUrl: string) => signedUrl.slice(PUBLIC_URL.length);
const download = async (options: { filename?: string } = {}) =>
  path(await api.blobs.signDownload(KEY, { expiresInSeconds: 60, contentType: TEXT, ...options }));
const upload = async (body: string) => {
  const content = { size: body.length, sha256: createHash("sha256").update(body).digest("hex") };
  return path((await api.blobs.signUpload(KEY, { ...content, expiresInSeconds: 60, contentType: TEXT })).url);
};
const stored = async () => {
  const blob = await api.blobs.get(KEY);
  return blob && Buffer.concat(await blob.body.toArray()).toString();
};
/** Sends a request without credentials, so that only the signed link authorizes it. */
const ask = (method: string, target: string, more: object = {}) => api.call(method, target, { key: null, ...more });
const refused = { status: 403, body: { error_code: "not_authorized", reason: "signed_url_invalid" } };

beforeEach(async () => void (await api.blobs.put(KEY, Buffer.from("hello"), { contentType: TEXT })));

describe("a signed link", () => {
  test("returns the bytes with the signed name and a type that browsers do not execute", async () => {
    const { status, headers, body } = await ask("GET", await download({ filename: "report.txt" }));
    expect([status, body]).toEqual([200, "hello"]);
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": TEXT,
      "content-length": "5",
      "content-disposition": `inline; filename="report.txt"; filename*=UTF-8''report.txt`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox",
      "cache-control": "private, no-store",
    });
  });
  test("accepts an additional credential", async () =>
    expect((await api.call("GET", await download(), { key: "bad" })).body).toBe("hello"));
  test("returns headers without bytes for HEAD", async () => {
    const { status, headers, body } = await ask("HEAD", await download());
    expect([status, headers.get("content-length"), body]).toEqual([200, "5", ""]);
  });
  test("returns 404 for an absent file", async () => {
    await api.blobs.delete(KEY);
    expect((await ask("GET", await download())).status).toBe(404);
  });
  test("accepts an upload, which replaces the earlier content", async () => {
    expect((await ask("PUT", await upload("new bytes"), { rawBody: "new bytes" })).status).toBe(200);
    expect(await stored()).toBe("new bytes");
  });
});

describe("rejects without a change:", () => {
  const tampered: [string, string, () => Promise<string>][] = [
    ["GET", "no signature", async () => `/blobs/${KEY}`],
    ["GET", "another file", async () => (await download()).replace("out.txt", "other.txt")],
    ["GET", "a longer life", async () => (await download()).replace(/exp=\d+/, "exp=9999999999")],
    ["GET", "another name", async () => (await download({ filename: "a.txt" })).replace("a.txt", "b.txt")],
    ["GET", "one more parameter", async () => `${await download()}&type=text%2Fhtml`],
    ["GET", "a cut signature", async () => (await download()).slice(0, -2)],
    ["GET", "an upload link", () => upload("bad")],
    ["PUT", "a download link", () => download()],
    ["PUT", "another size", async () => (await upload("bad!!")).replace("size=5", "size=3")],
    ["DELETE", "another method", () => download()],
    ["POST", "POST on an upload link", () => upload("bad")],
  ];
  test.each(tampered)("%s with %s", async (method, _fault, target) => {
    expect(
      await ask(method, await target(), method === "PUT" || method === "POST" ? { rawBody: "bad" } : {}),
    ).toMatchObject(refused);
    expect(await stored()).toBe("hello");
  });
  test.each([
    "../master.key",
    "runs/../../master.key",
    "runs/%2e%2e/%2e%2e/master.key",
    "runs/1/out.txt%00",
    "runs//1/out.txt",
    "/etc/passwd",
  ])("the path %s", async (key) => {
    expect(await rawStatus((await download()).replace(KEY, key))).toBe(403);
  });
  test("an expired link", async () => {
    const [get, put] = [await download(), await upload("late")];
    api.clock.advance(60_000);
    expect(await ask("GET", get)).toMatchObject(refused);
    expect(await ask("PUT", put, { rawBody: "late" })).toMatchObject(refused);
    expect(await stored()).toBe("hello");
    expect(api.clock.now().getTime()).toBeGreaterThan(Date.parse(NOW));
  });
  test.each(["12345", "1234567", "12345!"])("an upload of %j where 123456 was announced", async (rawBody) => {
    expect(await ask("PUT", await upload("123456"), { rawBody })).toMatchObject({
      status: 400,
      body: { error_code: "invalid_request", reason: "blob_content_mismatch" },
    });
    expect(await stored()).toBe("hello");
  });
  test("an upload that is far too long, while the client is still sending", async () => {
    expect(await ask("PUT", await upload("12345"), { rawBody: new Uint8Array(20_000_000) })).toMatchObject({
      status: 400,
    });
    expect(await stored()).toBe("hello");
  });
  test("an upload that is interrupted", async () => {
    const target = await upload("half of it");
    await new Promise<void>((resolve) => {
      const request = httpRequest(`${api.url}${target}`, { method: "PUT", headers: { "content-length": "10" } });
      request.on("error", () => resolve());
      request.write("half", () => request.destroy());
    });
    expect((await ask("GET", await download())).body).toBe("hello");
  });
});

/** Requests the target unchanged: other clients resolve dot segments themselves. */
const rawStatus = (target: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(api.url);
    httpRequest({ hostname, port, path: target }, (response) => resolve(response.resume().statusCode))
      .on("error", reject)
      .end();
  });
