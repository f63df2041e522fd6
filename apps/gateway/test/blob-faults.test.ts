import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { directoryBlobs, type BlobStore } from "@millwright/blobs";
import { systemClock } from "@millwright/clock";
import { memoryLog } from "@millwright/testing";
import { blobMount } from "../src/routes/platform/blobs.ts";

const signingKey = new Uint8Array(32).fill(5);
const log = memoryLog();
let server: Server;
let url: string;

beforeAll(async () => {
  const store: BlobStore = {
    ...directoryBlobs({ dir: "/nonexistent", publicUrl: "", signingKey, clock: systemClock }),
    get: () => Promise.reject(new Error("EIO: private text")),
  };
  const { listener } = blobMount({ store, signingKey, publicUrl: "https://mill.example", clock: systemClock, log });
  server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${await store.signDownload("runs/1/out.txt", { expiresInSeconds: 60, contentType: "text/plain" })}`;
});
afterAll(() => void server.close());

test("returns 500 without details if the store fails, and logs the cause with the trace id; rejections are not logged as failures", async () => {
  const answer = await fetch(url);
  const body = (await answer.json()) as { trace_id: string };
  expect([answer.status, JSON.stringify(body)]).toEqual([500, expect.not.stringContaining("private")]);
  expect((await fetch(url.replace("exp=", "exp=9"))).status).toBe(403);
  const failures = log.entries.filter(({ level }) => level === "error");
  expect(failures).toEqual([expect.objectContaining({ fields: expect.objectContaining({ traceId: body.trace_id }) })]);
});
