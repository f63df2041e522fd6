import { once } from "node:events";
import { createServer, request, type ClientRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Semaphore } from "./semaphore.ts";
import { drain, readLargeBody } from "./read-body.ts";

const LIMIT = 1_600_000;
const LARGE = "x".repeat(1_500_000);
let server: Server;
let semaphore: Semaphore;

/**
 * Responds with the number of bytes read. A request has its permit, or is queued, as soon as the event `request` is
 * emitted.
 */
async function serve(timeoutMs = 60_000): Promise<void> {
  server = createServer((req, res) => {
    const respond = async () => {
      const read = await readLargeBody(req, res, semaphore, LIMIT, timeoutMs);
      await drain(req);
      res.setHeader("connection", "close").end("bytes" in read ? `read ${read.bytes.length}` : JSON.stringify(read));
    };
    void respond();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
}
beforeEach(() => void (semaphore = new Semaphore(1)));
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
const send = async (body: string | ReadableStream): Promise<string> =>
  (
    await fetch(url(), { method: "POST", body, ...(typeof body === "string" ? {} : { duplex: "half" as const }) })
  ).text();
/** Starts a large request, sends a part of its body and leaves it open. */
async function startLargeRequest(): Promise<ClientRequest> {
  const received = once(server, "request");
  const pending = request(url(), { method: "POST", headers: { "content-length": 1_550_000 } }).on("error", () => {});
  pending.write("{");
  await received;
  return pending;
}

describe("while a large body is being read", () => {
  test("small bodies are read and other large ones are queued", async () => {
    await serve();
    const blocking = await startLargeRequest();
    const received = once(server, "request");
    let isFinished = false;
    const queued = send(LARGE).finally(() => (isFinished = true));
    await received;
    expect([await send("small"), isFinished]).toEqual(["read 5", false]);
    blocking.destroy();
    expect(await queued).toBe("read 1500000");
  });
  test("a body without a declared length is queued", async () => {
    await serve();
    const blocking = await startLargeRequest();
    const received = once(server, "request");
    let isFinished = false;
    const queued = send(new Blob(["chunked"]).stream()).finally(() => (isFinished = true));
    await received;
    expect([await send("small"), isFinished]).toEqual(["read 5", false]);
    blocking.destroy();
    expect(await queued).toBe("read 7");
  });
  test("a body that is too large is not queued, and one without a permit in time is lost", async () => {
    await serve(50);
    semaphore = new Semaphore(0);
    expect([await send(LARGE), await send("x".repeat(LIMIT + 1))]).toEqual([
      '{"isLost":true}',
      `{"tooLargeBytes":${LIMIT + 1}}`,
    ]);
  });
  test("a sender that disconnects while queued does not use up a permit", async () => {
    await serve();
    const blocking = await startLargeRequest();
    const leaving = await startLargeRequest();
    leaving.destroy();
    blocking.destroy();
    expect([await send(LARGE), await send(LARGE)]).toEqual(["read 1500000", "read 1500000"]);
  });
});
