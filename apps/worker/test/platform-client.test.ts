import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { ExecutionContext } from "../src/context/execution-context.ts";
import type { FakePlatform } from "./fake-platform.ts";
import { drivenExecution, testWorker, type TestWorker } from "./test-worker.ts";

let started: TestWorker;
let platform: FakePlatform;
let ctx: ExecutionContext;
let dir: string;
beforeEach(async () => {
  const driven = drivenExecution();
  started = await testWorker({ runExecution: driven.runExecution });
  platform = started.platform;
  platform.offer(1n);
  await eventually(() => driven.contexts.length === 1);
  ctx = driven.contexts[0]!;
  dir = await mkdtemp(join(tmpdir(), "millwright-platform-"));
});
afterEach(async () => {
  await started.close();
  await rm(dir, { recursive: true });
});
const sha256 = (content: string | Uint8Array) => createHash("sha256").update(content).digest("hex");
const paths = () => platform.requests.map(({ method, url }) => `${method} ${url}`);

describe("the public API", () => {
  test("is called with the current run token, and any final response is returned", async () => {
    platform.runToken = "mwr_token-2";
    const { length } = platform.heartbeats;
    await eventually(() => platform.heartbeats.length > length + 1);
    platform.restResponses.push({ status: 409, body: { error_code: "conflict" } });
    expect(await ctx.platform.rest("post", "/api/v1/agent/runs", { prompt: "x" })).toMatchObject({
      status: 409,
      body: { error_code: "conflict" },
    });
    expect(platform.requests).toEqual([
      { method: "POST", url: "/api/v1/agent/runs", authorization: "Bearer mwr_token-2", body: '{"prompt":"x"}' },
    ]);
  });

  test.each<[string, string, Record<string, string>, number]>([
    ["GET", "is sent again", {}, 2],
    ["POST with an idempotency key", "is sent again", { "idempotency-key": "c1-1" }, 2],
    ["POST without one", "is not sent again", {}, 1],
  ])("after a retryable response, a %s %s", async (kind, _, headers, calls) => {
    platform.restResponses.push({ status: 500, body: { retryable: true } });
    const response = await ctx.platform.rest(kind.split(" ")[0]!, "/api/v1/x", undefined, headers);
    expect([response.status, platform.requests.length]).toEqual([calls === 1 ? 500 : 200, calls]);
  });

  test("a rejected token does not end the call: nothing was done, and the next heartbeat brings another one, or none", async () => {
    platform.restResponses.push({ status: 401, body: { retryable: false } });
    expect(await ctx.platform.rest("POST", "/api/v1/x")).toMatchObject({ status: 200 });
    expect(platform.requests).toHaveLength(2);
  });

  test("is believed after a number of tries", async () => {
    platform.restResponses.push(...Array.from({ length: 20 }, () => ({ status: 503, body: {} })));
    expect(await ctx.platform.rest("GET", "/api/v1/x")).toMatchObject({ status: 503 });
    expect(platform.requests).toHaveLength(10);
  });
});

describe("artifacts", () => {
  test("go inline up to 256 KiB", async () => {
    await ctx.platform.createArtifact({
      clientArtifactId: "small",
      artifactType: "FILE",
      data: {},
      content: new Uint8Array(256 * 1024),
    });
    expect([paths(), platform.calls.includes("commitArtifact")]).toEqual([[], false]);
  });

  test("above the limit are uploaded, then committed; a failed upload is retried", async () => {
    platform.restResponses.push({ status: 503, body: {} });
    await ctx.platform.createArtifact({
      clientArtifactId: "large",
      artifactType: "FILE",
      data: {},
      content: new Uint8Array(256 * 1024 + 1),
    });
    expect(paths()).toEqual(["PUT /blobs/large", "PUT /blobs/large"]);
    const content = Buffer.alloc(256 * 1024 + 1);
    expect(platform.requests[1]).toMatchObject({ signed: sha256(content), body: content.toString("latin1") });
    expect(platform.calls.at(-1)).toBe("commitArtifact");
  });

  test("whose upload is rejected get the reason", async () => {
    platform.restResponses.push({ status: 403, body: {} });
    const refused = ctx.platform.createArtifact({
      clientArtifactId: "large",
      artifactType: "FILE",
      data: {},
      content: new Uint8Array(256 * 1024 + 1),
    });
    await expect(refused).rejects.toMatchObject({ reason: "transfer_refused" });
  });
});

test("snapshots are uploaded from a file, and downloaded into one", async () => {
  await writeFile(join(dir, "snapshot"), "bundle");
  expect(await ctx.platform.putSnapshot(join(dir, "snapshot"))).toEqual({ snapshotKey: "snap-1" });
  expect(platform.requests).toMatchObject([
    { method: "PUT", url: "/blobs/snapshot", signed: sha256("bundle"), body: "bundle" },
  ]);
  platform.restResponses.push({ status: 200, body: { a: 1 } });
  await ctx.platform.download(`${platform.url}/blobs/snapshot`, join(dir, "restored"));
  expect(await readFile(join(dir, "restored"), "utf8")).toBe('{"a":1}');
});

test("a transcript is uploaded as it was announced", async () => {
  await ctx.platform.putTranscript(Buffer.from("lines\n"));
  expect(platform.requests).toMatchObject([
    { method: "PUT", url: "/blobs/transcript", signed: sha256("lines\n"), body: "lines\n" },
  ]);
});

test("history is read to its end", async () => {
  platform.history = [
    { kind: "message", payload: { text: "a" }, runUid: "run-0", executionId: 7n },
    { kind: "turn_end", runUid: "run-1" },
  ];
  expect(await ctx.platform.readHistory()).toEqual([
    { seq: 1n, kind: "message", payload: { text: "a" }, runUid: "run-0", executionId: 7n },
    { seq: 2n, kind: "turn_end", payload: {}, runUid: "run-1", executionId: 0n },
  ]);
});

test("a lost lease ends calls under way", async () => {
  platform.setDown(true);
  const call = ctx.platform.rest("GET", "/api/v1/x");
  platform.attempts.get("1-1")!.state = "lost";
  platform.setDown(false);
  await eventually(() => ctx.signal.aborted);
  await expect(call.then(() => ctx.platform.rest("GET", "/api/v1/x"))).rejects.toMatchObject({ reason: "lease_lost" });
});
