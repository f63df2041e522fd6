import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { request as httpRequest } from "node:http";
import { NOW, openDoor, PUBLIC_URL, type Door } from "./support/door.ts";

let door: Door;
beforeAll(async () => void (door = await openDoor()));
afterAll(() => door.close());

const KEY = "runs/1/out.txt";
const TEXT = "text/plain";
const path = (signedUrl: string) => signedUrl.slice(PUBLIC_URL.length);
const download = (options: { filename?: string; expiresInSeconds?: number } = {}) => path(door.blobs.signedUrl(KEY, { method: "GET", expiresInSeconds: 60, ...options }));
const upload = (sizeBytesMax?: number) => path(door.blobs.signedUrl(KEY, { method: "PUT", expiresInSeconds: 60, contentType: TEXT, ...(sizeBytesMax ? { sizeBytesMax } : {}) }));
const stored = async () => {
  const blob = await door.blobs.get(KEY);
  return blob && Buffer.concat(await blob.body.toArray()).toString();
};
/** No credential but the link. */
const ask = (method: string, target: string, more: object = {}) => door.call(method, target, { key: null, ...more });
const refused = { status: 403, body: { error_code: "not_authorized", reason: "signed_url_invalid" } };

beforeEach(async () => void (await door.blobs.put(KEY, Buffer.from("hello"), { contentType: TEXT })));

describe("a signed link", () => {
  test("gives the bytes under the name it says, and nothing that a browser would run", async () => {
    const { status, headers, body } = await ask("GET", download({ filename: "report.txt" }));
    expect([status, body]).toEqual([200, "hello"]);
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": TEXT, "content-length": "5", "content-disposition": `inline; filename="report.txt"; filename*=UTF-8''report.txt`, "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox", "cache-control": "private, no-store",
    });
  });
  test("tolerates a credential", async () => expect((await door.call("GET", download(), { key: "bad" })).body).toBe("hello"));
  test("answers HEAD without the bytes", async () => {
    const { status, headers, body } = await ask("HEAD", download());
    expect([status, headers.get("content-length"), body]).toEqual([200, "5", ""]);
  });
  test("to nothing is a 404", async () => {
    await door.blobs.delete(KEY);
    expect((await ask("GET", download())).status).toBe(404);
  });
  test("takes an upload, replacing what was there", async () => {
    expect((await ask("PUT", upload(), { rawBody: "new bytes" })).status).toBe(200);
    expect([await stored(), (await ask("GET", download())).headers.get("content-type")]).toEqual(["new bytes", TEXT]);
  });
});

describe("refused and changes nothing:", () => {
  const tampered: [string, string, () => string][] = [
    ["GET", "no signature", () => `/blobs/${KEY}`],
    ["GET", "another file", () => download().replace("out.txt", "other.txt")],
    ["GET", "a longer life", () => download().replace(/exp=\d+/, "exp=9999999999")],
    ["GET", "another name", () => download({ filename: "a.txt" }).replace("a.txt", "b.txt")],
    ["GET", "one more parameter", () => `${download()}&type=text%2Fhtml`],
    ["GET", "a cut signature", () => download().slice(0, -2)],
    ["GET", "an upload link", () => upload()],
    ["PUT", "a download link", () => download()],
    ["PUT", "a larger limit", () => upload(5).replace("max=5", "max=500")],
    ["DELETE", "another method", () => download()],
    ["POST", "POST on an upload link", () => upload()],
  ];
  test.each(tampered)("%s with %s", async (method, _fault, target) => {
    expect(await ask(method, target(), method === "PUT" || method === "POST" ? { rawBody: "bad" } : {})).toMatchObject(refused);
    expect(await stored()).toBe("hello");
  });
  test.each(["../master.key", "runs/../../master.key", "runs/%2e%2e/%2e%2e/master.key", "runs/1/out.txt%00", "runs//1/out.txt", "/etc/passwd"])("the path %s", async (key) => {
    expect(await rawStatus(download().replace(KEY, key))).toBe(403);
  });
  test("an expired link", async () => {
    const [get, put] = [download(), upload()];
    door.clock.advance(60_000);
    expect(await ask("GET", get)).toMatchObject(refused);
    expect(await ask("PUT", put, { rawBody: "late" })).toMatchObject(refused);
    expect(await stored()).toBe("hello");
    expect(door.clock.now().getTime()).toBeGreaterThan(Date.parse(NOW));
  });
  test("an upload beyond its limit", async () => {
    expect(await ask("PUT", upload(5), { rawBody: "12345" })).toMatchObject({ status: 200 });
    expect(await ask("PUT", upload(5), { rawBody: "123456" })).toMatchObject({ status: 413, body: { error_code: "payload_too_large", reason: "blob_too_large" } });
    expect(await stored()).toBe("12345");
  });
  test("a long upload beyond its limit, told to a client that is still sending", async () => {
    expect(await ask("PUT", upload(5), { rawBody: new Uint8Array(20_000_000) })).toMatchObject({ status: 413 });
    expect(await stored()).toBe("hello");
  });
  test("an upload that breaks off", async () => {
    await new Promise<void>((resolve) => {
      const request = httpRequest(`${door.url}${upload()}`, { method: "PUT", headers: { "content-length": "100" } });
      request.on("error", () => resolve());
      request.write("half", () => request.destroy());
    });
    expect((await ask("GET", download())).body).toBe("hello");
  });
});

/** As it stands: other clients resolve dots themselves. */
const rawStatus = (target: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(door.url);
    httpRequest({ hostname, port, path: target }, (response) => resolve(response.resume().statusCode)).on("error", reject).end();
  });
