import { expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { readConfig } from "@millwright/config";
import { blobDirectory, blobSettings, bucketSettings, openBucket } from "./index.ts";

const CREDENTIALS = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: "hunter2" };
const open = (url: string, env: Record<string, string> = CREDENTIALS) =>
  openBucket(url, readConfig(env, bucketSettings), systemClock);
const linkOf = async (url: string, env?: Record<string, string>) =>
  (await open(url, env).signDownload("a/b", { expiresInSeconds: 60, contentType: "text/plain" })).split("?")[0];

test.each([
  ["s3://bucket?region=eu-central-1", "https://bucket.s3.eu-central-1.amazonaws.com/a/b"],
  ["s3://with.dots?region=eu-central-1", "https://s3.eu-central-1.amazonaws.com/with.dots/a/b"],
  ["s3://bucket?endpoint=http://minio:9000", "http://minio:9000/bucket/a/b"],
  ["s3://bucket/?endpoint=https://host/s3/&region=r", "https://host/s3/bucket/a/b"],
])("resolves %s to %s", async (url, link) => expect(await linkOf(url)).toBe(link));

test("takes the region from AWS_REGION", async () =>
  expect(await linkOf("s3://bucket", { ...CREDENTIALS, AWS_REGION: "us-west-2" })).toBe(
    "https://bucket.s3.us-west-2.amazonaws.com/a/b",
  ));

test.each([
  ["https://bucket?region=r", CREDENTIALS, "MILLWRIGHT_BLOB_URL must be s3://bucket"],
  ["s3://bucket/folder?region=r", CREDENTIALS, "MILLWRIGHT_BLOB_URL must be s3://bucket"],
  ["s3://?region=r", CREDENTIALS, "MILLWRIGHT_BLOB_URL must be s3://bucket"],
  ["s3://bucket?region=r&key=hunter2", CREDENTIALS, "MILLWRIGHT_BLOB_URL must be s3://bucket"],
  ["s3://bucket?endpoint=minio:9000", CREDENTIALS, "The endpoint of MILLWRIGHT_BLOB_URL must be an http(s) URL"],
  ["s3://bucket", CREDENTIALS, "MILLWRIGHT_BLOB_URL needs a region, or AWS_REGION"],
  [
    "s3://bucket?region=r",
    { AWS_SECRET_ACCESS_KEY: "hunter2" },
    "MILLWRIGHT_BLOB_URL needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
  ],
])("%s is rejected, naming the missing variable and no value", (url, env, message) => {
  expect(() => open(url, env)).toThrow(message);
  expect(() => open(url, env)).not.toThrow(/hunter2/);
});

test("requires either a bucket or a directory", () => {
  const read = (env: Record<string, string>) => blobDirectory(readConfig(env, blobSettings));
  expect([read({ BLOB_DIR: "/blobs" }), read({ MILLWRIGHT_BLOB_URL: "s3://bucket" })]).toEqual(["/blobs", undefined]);
  for (const env of [{}, { BLOB_DIR: "/blobs", MILLWRIGHT_BLOB_URL: "s3://bucket" }] as Record<string, string>[])
    expect(() => read(env)).toThrow("Set MILLWRIGHT_BLOB_URL or BLOB_DIR, and not both");
});
