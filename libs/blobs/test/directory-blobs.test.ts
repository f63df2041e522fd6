import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { describe, expect, test } from "@jest/globals";
import { manualClock } from "@millwright/clock";
import { domainError } from "@millwright/testing";
import { directoryBlobs, verifySignedRequest } from "../src/index.ts";

const clock = manualClock("2026-11-20T10:00:00.000Z");
const signingKey = new Uint8Array(32).fill(3);
const store = () => {
  const dir = mkdtempSync(join(tmpdir(), "blobs-"));
  return { dir, blobs: directoryBlobs({ dir, publicUrl: "http://localhost:8080", signingKey, clock }) };
};

describe("a stored blob", () => {
  test.each([
    ["bytes", () => new TextEncoder().encode("hello\nworld")],
    ["a stream", () => Readable.from([Buffer.from("hello\n"), Buffer.from("world")])],
  ])("given as %s comes back with its type, size and hash", async (_, body) => {
    const { blobs } = store();
    expect(await blobs.put("runs/r1/log.txt", body(), { contentType: "text/plain; charset=utf-8" })).toEqual({
      size: 11,
      sha256: "26c60a61d01db5836ca70fefd44a6a016620413c8ef5f259a6c5612d4f79d3b8",
    });
    const blob = await blobs.get("runs/r1/log.txt");
    expect(blob).toMatchObject({ size: 11, contentType: "text/plain; charset=utf-8" });
    expect(blob && (await text(blob.body))).toBe("hello\nworld");
  });

  test("may be empty, and may be larger than one chunk", async () => {
    const { blobs } = store();
    const large = Buffer.alloc(300_000, "millwright");
    await blobs.put("empty", new Uint8Array(), { contentType: "" });
    await blobs.put("large", Readable.from([large.subarray(0, 1), large.subarray(1)]), { contentType: "application/octet-stream" });
    const [empty, back] = [await blobs.get("empty"), await blobs.get("large")];
    expect(empty && [empty.size, (await buffer(empty.body)).length]).toEqual([0, 0]);
    expect(back && large.equals(await buffer(back.body))).toBe(true);
  });

  test("replaces what was there, is gone after its deletion, and absence is no error", async () => {
    const { blobs } = store();
    await blobs.put("a", Buffer.from("one"), { contentType: "text/plain" });
    await blobs.put("a", Buffer.from("two!"), { contentType: "text/html" });
    const blob = await blobs.get("a");
    expect(blob && [blob.contentType, await text(blob.body)]).toEqual(["text/html", "two!"]);
    await blobs.delete("a");
    await blobs.delete("a");
    expect(await blobs.get("a")).toBeUndefined();
    expect(await blobs.get("a/b")).toBeUndefined();
  });

  test("and one below its key do not meet", async () => {
    const { blobs } = store();
    await blobs.put("a", Buffer.from("1"), { contentType: "t" });
    await blobs.put("a/b", Buffer.from("2"), { contentType: "t" });
    expect([(await blobs.get("a"))?.body.destroy(), (await blobs.get("a/b"))?.body.destroy()]).toEqual([expect.anything(), expect.anything()]);
  });

  test("cannot smuggle its type into its body", async () => {
    const { blobs } = store();
    await blobs.put("a", Buffer.from("body"), { contentType: "text/plain\nextra" });
    const blob = await blobs.get("a");
    expect(blob && [blob.contentType, await text(blob.body)]).toEqual(["text/plainextra", "body"]);
  });
});

test("a body that is too long or breaks off leaves what was there, and no draft", async () => {
  const { blobs, dir } = store();
  await blobs.put("a", Buffer.from("old"), { contentType: "t" });
  const broken = Readable.from(
    (function* () {
      yield Buffer.from("ne");
      throw new Error("connection lost");
    })(),
  );
  await expect(blobs.put("a", Buffer.from("longer"), { contentType: "t", sizeBytesMax: 5 })).rejects.toEqual(domainError({ kind: "too_large", reason: "blob_too_large" }));
  await expect(blobs.put("a", broken, { contentType: "t" })).rejects.toThrow("connection lost");
  const blob = await blobs.get("a");
  expect(blob && (await text(blob.body))).toBe("old");
  expect(readdirSync(join(dir, ".drafts"))).toEqual([]);
});

test.each(["", "..", "../x", "a/../b", "/a", "a//b", "a/", ".drafts/x", "a\0b", "a b", "ä", "a.blob", "a.blob/b", "x".repeat(129), "a/".repeat(16) + "a"])(
  "the key %j is refused everywhere",
  async (key) => {
    const { blobs } = store();
    const refused = domainError({ kind: "invalid_argument", reason: "blob_key_invalid" });
    expect(() => blobs.signedUrl(key, { method: "GET", expiresInSeconds: 60 })).toThrow(refused);
    await expect(blobs.get(key)).rejects.toEqual(refused);
    await expect(blobs.delete(key)).rejects.toEqual(refused);
    await expect(blobs.put(key, Buffer.from("x"), { contentType: "t" })).rejects.toEqual(refused);
  },
);

describe("a signed URL", () => {
  const { blobs } = store();
  const verifying = { signingKey, clock };
  const target = (url: string) => url.slice("http://localhost:8080".length);
  const download = target(blobs.signedUrl("runs/r1/a.png", { method: "GET", expiresInSeconds: 60, filename: "Übersicht 1.png" }));
  const upload = target(blobs.signedUrl("up/1", { method: "PUT", expiresInSeconds: 60, contentType: "image/png", sizeBytesMax: 10 }));
  const refused = domainError({ kind: "permission_denied", reason: "signed_url_invalid" });

  test("permits what it says", () => {
    expect(verifySignedRequest(verifying, "GET", download)).toEqual({ key: "runs/r1/a.png", method: "GET", filename: "Übersicht 1.png" });
    expect(verifySignedRequest(verifying, "HEAD", download).method).toBe("GET");
    expect(verifySignedRequest(verifying, "PUT", upload)).toEqual({ key: "up/1", method: "PUT", contentType: "image/png", sizeBytesMax: 10 });
  });

  test.each([
    ["another method", "PUT", download],
    ["a read through an upload", "GET", upload],
    ["another key", "GET", download.replace("r1", "r2")],
    ["another name", "GET", download.replace("1.png&", "2.png&").replace("name=", "name=x")],
    ["a later end", "GET", download.replace(/exp=\d+/, "exp=9999999999")],
    ["a larger upload", "PUT", upload.replace("max=10", "max=1000")],
    ["an added parameter", "GET", `${download}&type=text/html`],
    ["no signature", "GET", download.replace(/&sig=.*/, "")],
    ["a way out", "GET", download.replace("/blobs/runs", "/blobs/../blobs/%2e%2e/runs")],
    ["another place", "GET", download.replace("/blobs/", "/other/")],
  ])("does not permit %s", (_, method, request) => expect(() => verifySignedRequest(verifying, method, request)).toThrow(refused));

  test("ends in time", () => {
    const later = manualClock("2026-11-20T10:00:59.000Z");
    expect(verifySignedRequest({ signingKey, clock: later }, "GET", download).key).toBe("runs/r1/a.png");
    later.advance(1_000);
    expect(() => verifySignedRequest({ signingKey, clock: later }, "GET", download)).toThrow(refused);
  });
});
