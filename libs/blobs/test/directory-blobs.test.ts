import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "@jest/globals";
import { manualClock } from "@millwright/clock";
import { domainError } from "@millwright/testing";
import { directoryBlobs, verifySignedRequest } from "../src/index.ts";

const clock = manualClock("2026-11-20T10:00:00.000Z");
const signingKey = new Uint8Array(32).fill(3);
const store = () =>
  directoryBlobs({ dir: mkdtempSync(join(tmpdir(), "blobs-")), publicUrl: "http://localhost:8080", signingKey, clock });

test("a blob and another below its key do not conflict", async () => {
  const blobs = store();
  await blobs.put("a", Buffer.from("1"), { contentType: "t" });
  await blobs.put("a/b", Buffer.from("2"), { contentType: "t" });
  for (const [key, body] of [
    ["a", "1"],
    ["a/b", "2"],
  ] as const) {
    const blob = await blobs.get(key);
    expect(blob && (await text(blob.body))).toBe(body);
  }
});

describe("a signed URL", () => {
  const blobs = store();
  const verifying = { signingKey, clock };
  const expected = { size: 10, sha256: "ab".repeat(32) };
  const target = (url: string) => url.slice("http://localhost:8080".length);
  const links = Promise.all([
    blobs.signDownload("runs/r1/a.png", {
      expiresInSeconds: 60,
      contentType: "image/png",
      filename: "Übersicht 1.png",
    }),
    blobs.signUpload("up/1", { ...expected, expiresInSeconds: 60, contentType: "image/png" }),
  ]).then(([download, { url }]) => ({ download: target(download), upload: target(url) }));
  const refused = domainError({ kind: "permission_denied", reason: "signed_url_invalid" });

  test("permits what it states", async () => {
    const { download, upload } = await links;
    expect(verifySignedRequest(verifying, "GET", download)).toEqual({
      key: "runs/r1/a.png",
      method: "GET",
      contentType: "image/png",
      filename: "Übersicht 1.png",
    });
    expect(verifySignedRequest(verifying, "HEAD", download).method).toBe("GET");
    expect(verifySignedRequest(verifying, "PUT", upload)).toEqual({
      key: "up/1",
      method: "PUT",
      contentType: "image/png",
      expected,
    });
  });

  test.each<[string, string, "download" | "upload", (link: string) => string]>([
    ["another method", "PUT", "download", (link) => link],
    ["a read through an upload", "GET", "upload", (link) => link],
    ["another key", "GET", "download", (link) => link.replace("r1", "r2")],
    ["another name", "GET", "download", (link) => link.replace("name=", "name=x")],
    ["a later end", "GET", "download", (link) => link.replace(/exp=\d+/, "exp=9999999999")],
    ["a larger upload", "PUT", "upload", (link) => link.replace("size=10", "size=1000")],
    ["other bytes", "PUT", "upload", (link) => link.replace("abab", "abac")],
    ["an added parameter", "GET", "download", (link) => `${link}&type=text/html`],
    ["no signature", "GET", "download", (link) => link.replace(/&sig=.*/, "")],
    ["a way out", "GET", "download", (link) => link.replace("/blobs/runs", "/blobs/../blobs/%2e%2e/runs")],
    ["another place", "GET", "download", (link) => link.replace("/blobs/", "/other/")],
  ])("does not permit %s", async (_, method, kind, change) => {
    const request = change((await links)[kind]);
    expect(() => verifySignedRequest(verifying, method, request)).toThrow(refused);
  });

  test("expires", async () => {
    const { download } = await links;
    const later = manualClock("2026-11-20T10:00:59.000Z");
    expect(verifySignedRequest({ signingKey, clock: later }, "GET", download).key).toBe("runs/r1/a.png");
    later.advance(1_000);
    expect(() => verifySignedRequest({ signingKey, clock: later }, "GET", download)).toThrow(refused);
  });
});
