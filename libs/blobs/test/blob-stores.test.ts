import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { systemClock, type Clock } from "@millwright/clock";
import { readConfig } from "@millwright/config";
import { isDomainError } from "@millwright/errors";
import { domainError, s3Server, type S3Server } from "@millwright/testing";
import {
  handleSignedRequest,
  bucketSettings,
  directoryBlobs,
  openBucket,
  type BlobStore,
  type ListedBlob,
} from "../src/index.ts";

const signingKey = new Uint8Array(32).fill(3);
const TEXT = "text/plain; charset=utf-8";
const MINUTE_MS = 60_000;
/** A clock in the past, for links that have already expired. */
const shifted = (ms: number): Clock => ({ ...systemClock, now: () => new Date(Date.now() + ms) });

let dir: string;
let gateway: Server;
let s3: S3Server;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "millwright-blobs-"));
  gateway = createServer((request, response) => {
    handleSignedRequest(stores.directory(), { signingKey, clock: systemClock }, request, response).catch(
      (error: unknown) => {
        if (!request.complete) response.setHeader("connection", "close");
        response.writeHead(isDomainError(error) && error.kind === "permission_denied" ? 403 : 400).end();
      },
    );
  });
  await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
  s3 = await s3Server();
});
afterAll(async () => {
  gateway.close();
  gateway.closeAllConnections();
  await s3.close();
  await rm(dir, { recursive: true });
});

const stores = {
  directory: (clock: Clock = systemClock): BlobStore =>
    directoryBlobs({
      dir,
      publicUrl: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`,
      signingKey,
      clock,
    }),
  S3: (clock: Clock = systemClock): BlobStore => openBucket(s3.blobUrl, readConfig(s3.env, bucketSettings), clock),
};
const contentOf = (body: Uint8Array | string) => ({
  size: Buffer.byteLength(body),
  sha256: createHash("sha256").update(body).digest("hex"),
});
const read = async (blobs: BlobStore, key: string) => {
  const blob = await blobs.get(key);
  return blob && text(blob.body);
};
async function listOf(blobs: BlobStore, folder: string): Promise<ListedBlob[]> {
  const all: ListedBlob[] = [];
  for await (const blob of blobs.list(folder)) all.push(blob);
  return all;
}
const keysIn = async (blobs: BlobStore, folder: string) =>
  (await listOf(blobs, folder)).map(({ key }) => key).toSorted();

describe.each(["directory", "S3"] as const)("%s:", (kind) => {
  const blobs = new Proxy({} as BlobStore, { get: (_target, name: keyof BlobStore) => stores[kind]()[name] });

  describe("a stored blob", () => {
    test.each([
      ["bytes", () => new TextEncoder().encode("hello\nworld")],
      ["a stream", () => Readable.from([Buffer.from("hello\n"), Buffer.from("world")])],
    ])("given as %s has the same type, size and hash when read", async (_, body) => {
      expect(await blobs.put("runs/r1/log.txt", body(), { contentType: TEXT })).toEqual(contentOf("hello\nworld"));
      const blob = await blobs.get("runs/r1/log.txt");
      expect(blob).toMatchObject({ size: 11, contentType: TEXT });
      expect(blob && (await text(blob.body))).toBe("hello\nworld");
    });

    test("may be empty, and may be larger than one chunk", async () => {
      const large = Buffer.alloc(300_000, "millwright");
      await blobs.put("sizes/empty", new Uint8Array(), { contentType: TEXT });
      await blobs.put("sizes/large", Readable.from([large.subarray(0, 1), large.subarray(1)]), {
        contentType: "application/octet-stream",
      });
      const [empty, back] = [await blobs.get("sizes/empty"), await blobs.get("sizes/large")];
      expect(empty && [empty.size, (await buffer(empty.body)).length]).toEqual([0, 0]);
      expect(back && large.equals(await buffer(back.body))).toBe(true);
    });

    test("is replaced by a second put, is gone after deletion, and deleting an absent key succeeds", async () => {
      await blobs.put("gone/a", Buffer.from("one"), { contentType: TEXT });
      await blobs.put("gone/a", Buffer.from("two!"), { contentType: "text/html" });
      const blob = await blobs.get("gone/a");
      expect(blob && [blob.contentType, await text(blob.body)]).toEqual(["text/html", "two!"]);
      await blobs.delete("gone/a");
      await blobs.delete("gone/a");
      expect(await blobs.get("gone/a")).toBeUndefined();
      expect(await blobs.get("gone/a/b")).toBeUndefined();
    });

    test.each([
      ["text/plain\nextra: é", "text/plainextra:"],
      ["", "application/octet-stream"],
    ])("declared as %j has type %s when stored, uploaded and served", async (contentType, type) => {
      await blobs.put("typed/a", Buffer.from("body"), { contentType });
      const blob = await blobs.get("typed/a");
      expect(blob && [blob.contentType, await text(blob.body)]).toEqual([type, "body"]);
      const { url, headers } = await blobs.signUpload("typed/b", {
        ...contentOf("body"),
        contentType,
        expiresInSeconds: 60,
      });
      expect((await fetch(url, { method: "PUT", body: "body", headers })).status).toBe(200);
      const served = await fetch(await blobs.signDownload("typed/b", { contentType, expiresInSeconds: 60 }));
      expect([
        served.headers.get("content-type"),
        served.headers.get("content-disposition"),
        await served.text(),
      ]).toEqual([type, "attachment", "body"]);
    });

    test("is unchanged when the new content differs from the expected or is interrupted", async () => {
      await blobs.put("saved/a", Buffer.from("old"), { contentType: TEXT });
      const mismatch = domainError({ kind: "invalid_argument", reason: "blob_content_mismatch" });
      const broken = Readable.from(
        (function* () {
          yield Buffer.from("ne");
          throw new Error("connection lost");
        })(),
      );
      for (const other of ["longer than it", "sh", "nwe"]) {
        await expect(
          blobs.put("saved/a", Buffer.from(other), { contentType: TEXT, expected: contentOf("new") }),
        ).rejects.toEqual(mismatch);
        await expect(
          blobs.put("saved/a", Readable.from([Buffer.from(other)]), { contentType: TEXT, expected: contentOf("new") }),
        ).rejects.toEqual(mismatch);
      }
      await expect(blobs.put("saved/a", broken, { contentType: TEXT })).rejects.toThrow("connection lost");
      expect(await read(blobs, "saved/a")).toBe("old");
      expect(await readdir(join(dir, ".drafts"))).toEqual([]);
      await blobs.put("saved/a", Buffer.from("new"), { contentType: TEXT, expected: contentOf("new") });
      expect(await read(blobs, "saved/a")).toBe("new");
    });
  });

  test.each([
    "",
    "..",
    "../x",
    "a/../b",
    "/a",
    "a//b",
    "a/",
    ".drafts/x",
    "a\0b",
    "a b",
    "ä",
    "a.blob",
    "a.blob/b",
    "x".repeat(129),
    "a/".repeat(16) + "a",
  ])("rejects the key %j everywhere", async (key) => {
    const refused = domainError({ kind: "invalid_argument", reason: "blob_key_invalid" });
    await expect(blobs.signDownload(key, { contentType: TEXT, expiresInSeconds: 60 })).rejects.toEqual(refused);
    await expect(blobs.signUpload(key, { ...contentOf("x"), contentType: TEXT, expiresInSeconds: 60 })).rejects.toEqual(
      refused,
    );
    await expect(blobs.get(key)).rejects.toEqual(refused);
    await expect(blobs.delete(key)).rejects.toEqual(refused);
    await expect(blobs.put(key, Buffer.from("x"), { contentType: TEXT })).rejects.toEqual(refused);
  });

  describe("a folder's list", () => {
    test("contains everything below the folder with the time of storage, and nothing else", async () => {
      const beganMs = Date.now();
      const keys = ["listed/r1/a", "listed/r1/b.txt", "listed/r2/a"];
      for (const key of [...keys, "listed2/a", "other/a"])
        await blobs.put(key, Buffer.from("x"), { contentType: TEXT });
      const found = await listOf(blobs, "listed");
      expect(found.map(({ key }) => key).toSorted()).toEqual(keys);
      for (const { storedAt } of found) expect(Math.abs(storedAt.getTime() - beganMs)).toBeLessThan(10 * MINUTE_MS);
      await blobs.delete("listed/r1/a");
      expect(await keysIn(blobs, "listed")).toEqual(keys.slice(1));
    });
    test("of an empty folder is empty", async () => expect(await keysIn(blobs, "never")).toEqual([]));
  });

  describe("a signed download", () => {
    const KEY = "links/r1/report";
    beforeAll(() => blobs.put(KEY, Buffer.from("hello"), { contentType: TEXT }));
    const link = (
      options: { contentType?: string; filename?: string; expiresInSeconds?: number } = {},
      clock?: Clock,
    ) => stores[kind](clock).signDownload(KEY, { contentType: TEXT, expiresInSeconds: 60, ...options });

    test("needs no authorization and has type and name", async () => {
      const answer = await fetch(await link({ filename: "Übersicht (1).txt" }));
      expect([answer.status, await answer.text()]).toEqual([200, "hello"]);
      expect(answer.headers.get("content-type")).toBe(TEXT);
      expect(answer.headers.get("content-disposition")).toBe(
        `inline; filename="_bersicht (1).txt"; filename*=UTF-8''%C3%9Cbersicht%20%281%29.txt`,
      );
      expect(answer.headers.get("cache-control")).toBe("private, no-store");
    });
    test.each(["text/html", "image/svg+xml", "application/javascript"])(
      "of %s is an attachment",
      async (contentType) => {
        const answer = await fetch(await link({ contentType, filename: "a" }));
        await answer.body?.cancel();
        expect([answer.status, answer.headers.get("content-disposition")]).toEqual([
          200,
          `attachment; filename="a"; filename*=UTF-8''a`,
        ]);
      },
    );
    test("of an absent blob is a 404", async () => {
      const url = await blobs.signDownload("links/none", { contentType: TEXT, expiresInSeconds: 60 });
      expect((await fetch(url)).status).toBe(404);
    });
    test.each<[string, (url: URL) => void]>([
      ["another file", (url) => (url.pathname = url.pathname.replace("r1", "r2"))],
      ["another type", (url) => withParameter(url, /type$/, "text/html")],
      ["another name", (url) => withParameter(url, /name$|disposition$/, "other")],
      ["a longer life", (url) => withParameter(url, /^exp$|Expires$/, "604800")],
      ["one more parameter", (url) => url.searchParams.set("response-expires", "never")],
      ["another signature", (url) => withParameter(url, /^sig$|Signature$/, "0".repeat(64))],
      ["no signature", (url) => (url.search = "")],
    ])("with %s is rejected", async (_, change) => {
      const url = new URL(await link({ filename: "a.txt" }));
      change(url);
      expect((await fetch(url)).status).toBe(403);
    });
    test("does not upload or delete", async () => {
      const url = await link();
      for (const method of ["PUT", "DELETE", "POST"])
        expect((await fetch(url, { method, body: method === "DELETE" ? undefined : "x" })).status).toBe(403);
      expect(await read(blobs, KEY)).toBe("hello");
    });
    test("expires", async () => {
      expect((await fetch(await link({ expiresInSeconds: 120 }, shifted(-MINUTE_MS)))).status).toBe(200);
      expect((await fetch(await link({ expiresInSeconds: 60 }, shifted(-2 * MINUTE_MS)))).status).toBe(403);
    });
  });

  describe("a signed upload", () => {
    const announced = (body: string, clock?: Clock) => {
      const key = `uploads/r1/${contentOf(body).sha256}`;
      const signing = stores[kind](clock).signUpload(key, {
        ...contentOf(body),
        contentType: TEXT,
        expiresInSeconds: 60,
      });
      const put = async (sent: string | Uint8Array, headers: Record<string, string> = {}) => {
        const { url, headers: signed } = await signing;
        return (await fetch(url, { method: "PUT", body: sent, headers: { ...signed, ...headers } })).status;
      };
      return { key, put };
    };

    test.each(["hello", ""])("needs no authorization and stores %j with its type", async (body) => {
      const { key, put } = announced(body);
      expect(await put(body)).toBe(200);
      const blob = await blobs.get(key);
      expect(blob && [blob.contentType, await text(blob.body)]).toEqual([TEXT, body]);
    });
    test.each([
      ["longer", "hello you!"],
      ["shorter", "hello"],
      ["of the same length", "hello yoo"],
      ["much longer", new Uint8Array(5_000_000)],
    ])("of other bytes, %s, stores nothing", async (_, other) => {
      const { key, put } = announced("hello you");
      expect(await put(other)).toBeGreaterThanOrEqual(400);
      expect(await blobs.get(key)).toBeUndefined();
    });
    test("cannot change stored content when used again", async () => {
      const { key, put } = announced("committed");
      expect(await put("committed")).toBe(200);
      expect(await put("c0mmitted")).toBeGreaterThanOrEqual(400);
      expect(await put("c0mmitted", { "x-amz-content-sha256": contentOf("c0mmitted").sha256 })).toBeGreaterThanOrEqual(
        400,
      );
      expect(await put("c0mmitted", { "x-amz-content-sha256": "UNSIGNED-PAYLOAD" })).toBeGreaterThanOrEqual(400);
      expect(await read(blobs, key)).toBe("committed");
      expect(await put("committed")).toBe(200);
      expect(await read(blobs, key)).toBe("committed");
    });
    test("does not read, and expires", async () => {
      const url = (
        await blobs.signUpload("links/r1/report", { ...contentOf("x"), contentType: TEXT, expiresInSeconds: 60 })
      ).url;
      expect((await fetch(url)).status).toBe(403);
      const late = announced("late", shifted(-2 * MINUTE_MS));
      expect(await late.put("late")).toBe(403);
      expect(await blobs.get(late.key)).toBeUndefined();
    });
  });

  describe("an open upload", () => {
    const KEY = "uploads/open/1";
    const open = (clock?: Clock, key = KEY) =>
      stores[kind](clock).signOpenUpload(key, { contentType: TEXT, expiresInSeconds: 60, sizeMax: 5 });
    const put = async (url: string | URL, body: string) =>
      (await fetch(url, { method: "PUT", body, headers: { "content-type": "image/png" } })).status;

    test("needs no authorization, accepts any content, and the last upload counts", async () => {
      const { url } = await open();
      for (const body of ["one", "", "three"])
        expect([await put(url, body), await read(blobs, KEY)]).toEqual([200, body]);
    });
    test("does not read, is limited to its key, and expires", async () => {
      const { url } = await open();
      expect((await fetch(url)).status).toBe(403);
      const other = new URL(url);
      other.pathname = other.pathname.replace("/open/1", "/open/2");
      expect([await put(other, "x"), await put((await open(shifted(-2 * MINUTE_MS))).url, "x")]).toEqual([403, 403]);
      expect(await blobs.get("uploads/open/2")).toBeUndefined();
    });
  });
});

test("an open upload to the directory has a signed size limit", async () => {
  const { url } = await stores
    .directory()
    .signOpenUpload("uploads/open/3", { contentType: TEXT, expiresInSeconds: 60, sizeMax: 5 });
  const wider = new URL(url);
  withParameter(wider, /^max$/, "50");
  for (const [target, status] of [
    [url, 400],
    [wider, 403],
  ] as const)
    expect((await fetch(target, { method: "PUT", body: "sixsix" })).status).toBe(status);
  expect(await stores.directory().get("uploads/open/3")).toBeUndefined();
});

test("removes temporary files of interrupted writes only after they are old", async () => {
  const blobs = stores.directory();
  await blobs.put("any/a", Buffer.from("x"), { contentType: TEXT });
  for (const [name, ageMs] of [
    ["old", 2 * MINUTE_MS],
    ["new", 0],
  ] as const) {
    await writeFile(join(dir, ".drafts", name), "half");
    await utimes(join(dir, ".drafts", name), new Date(), new Date(Date.now() - ageMs));
  }
  await blobs.deleteDrafts(new Date(Date.now() - MINUTE_MS));
  expect(await readdir(join(dir, ".drafts"))).toEqual(["new"]);
  await rm(join(dir, ".drafts", "new"));
});

/** Sets the parameters whose names match. */
function withParameter(url: URL, name: RegExp, value: string): void {
  const names = [...url.searchParams.keys()].filter((one) => name.test(one));
  if (names.length === 0) throw new Error(`no parameter ${name}`);
  for (const one of names) url.searchParams.set(one, value);
}
