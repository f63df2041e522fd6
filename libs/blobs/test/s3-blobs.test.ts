import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { readConfig } from "@millwright/config";
import { domainError, s3Server, type S3Server } from "@millwright/testing";
import { bucketSettings, openBucket, type BlobStore } from "../src/index.ts";
import { s3Blobs } from "../src/s3-blobs.ts";

const open = (env: Record<string, string>, blobUrl = s3.blobUrl): BlobStore =>
  openBucket(blobUrl, readConfig(env, bucketSettings), systemClock);
const download = { expiresInSeconds: 60, contentType: "text/plain" };

let s3: S3Server;
beforeAll(async () => void (s3 = await s3Server()));
afterAll(() => s3.close());

test("rejects unsigned reads, writes and lists", async () => {
  await open(s3.env).put("a/b", Buffer.from("x"), { contentType: "text/plain" });
  const answers = await Promise.all([
    fetch(`${s3.bucketUrl}/a/b`),
    fetch(`${s3.bucketUrl}/a/b`, { method: "PUT", body: "y" }),
    fetch(s3.bucketUrl),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 403]);
});

test("a list continues over all pages", async () => {
  const [accessKeyId, secretAccessKey] = [s3.env.AWS_ACCESS_KEY_ID, s3.env.AWS_SECRET_ACCESS_KEY];
  const blobs = s3Blobs({
    bucketUrl: s3.bucketUrl,
    region: "eu-test-1",
    credentials: { accessKeyId, secretAccessKey },
    clock: systemClock,
    pageSize: 2,
  });
  const keys = ["pages/r1/a", "pages/r1/b", "pages/r1/c", "pages/r2/a", "pages/r2/b"];
  for (const key of keys) await blobs.put(key, Buffer.from("x"), { contentType: "text/plain" });
  const found: string[] = [];
  for await (const { key } of blobs.list("pages")) found.push(key);
  expect(found).toEqual(keys);
});

test("includes temporary credentials in links", async () => {
  const url = new URL(await open({ ...s3.env, AWS_SESSION_TOKEN: "temporary" }).signDownload("a/b", download));
  expect(url.searchParams.get("X-Amz-Security-Token")).toBe("temporary");
});

test("reports wrong credentials with S3's message and without the credentials", async () => {
  const refused = open({ ...s3.env, AWS_SECRET_ACCESS_KEY: "hunter2" }).get("a/b");
  await expect(refused).rejects.toThrow("S3 responded with 403 SignatureDoesNotMatch to GET");
  await expect(refused).rejects.not.toThrow("hunter2");
});

test("reports a missing bucket; nothing counts as stored, absent or empty", async () => {
  const blobs = open(s3.env, s3.blobUrl.replace("millwright", "elsewhere"));
  const list = async () => {
    for await (const { key } of blobs.list("a")) throw new Error(key);
  };
  for (const act of [
    () => blobs.put("a/b", Buffer.from("x"), { contentType: "text/plain" }),
    () => blobs.get("a/b"),
    () => blobs.delete("a/b"),
    list,
  ]) {
    await expect(act()).rejects.toThrow("S3 responded with 404 NoSuchBucket");
  }
});

test("retries a transient server failure; a permanent one, or an absent server, is unavailable", async () => {
  const unavailable = domainError({ kind: "unavailable", reason: "blob_store_unavailable", retryable: true });
  let failures = 1;
  const server = createServer(
    (_request, response) => void response.writeHead(failures-- > 0 ? 503 : 200, { "content-length": "0" }).end(),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const blobs = open(s3.env, `s3://bucket?endpoint=http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await blobs.delete("a");
  failures = Number.POSITIVE_INFINITY;
  await expect(blobs.delete("a")).rejects.toEqual(unavailable);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await expect(blobs.delete("a")).rejects.toEqual(unavailable);
});
