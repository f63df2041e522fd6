import { once } from "node:events";
import { createServer, request, type ClientRequest, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Places } from "./places.ts";
import { drain, readLargeBody } from "./read-body.ts";

const LIMIT = 1_600_000;
const LARGE = "x".repeat(1_500_000);
let server: Server;
let places: Places;

/** Answers how much it has read. A request has its place, or stands in line, as soon as `request` is told. */
async function serve(timeoutMs = 60_000): Promise<void> {
  server = createServer((req, res) => {
    const answer = async () => {
      const read = await readLargeBody(req, res, places, LIMIT, timeoutMs);
      await drain(req);
      res.setHeader("connection", "close").end("bytes" in read ? `read ${read.bytes.length}` : JSON.stringify(read));
    };
    void answer();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
}
beforeEach(() => void (places = new Places(1)));
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
const url = (): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
const send = async (body: string | ReadableStream): Promise<string> =>
  (
    await fetch(url(), { method: "POST", body, ...(typeof body === "string" ? {} : { duplex: "half" as const }) })
  ).text();
/** Promises a large body, sends a piece of it, and stays. */
async function stay(): Promise<ClientRequest> {
  const told = once(server, "request");
  const staying = request(url(), { method: "POST", headers: { "content-length": 1_550_000 } }).on("error", () => {});
  staying.write("{");
  await told;
  return staying;
}

describe("while a large body is held", () => {
  test("small ones are read, other large ones wait for their turn", async () => {
    await serve();
    const holder = await stay();
    const told = once(server, "request");
    let isAnswered = false;
    const waiting = send(LARGE).finally(() => (isAnswered = true));
    await told;
    expect([await send("small"), isAnswered]).toEqual(["read 5", false]);
    holder.destroy();
    expect(await waiting).toBe("read 1500000");
  });
  test("so does one that does not say how large it is", async () => {
    await serve();
    const holder = await stay();
    const told = once(server, "request");
    let isAnswered = false;
    const waiting = send(new Blob(["chunked"]).stream()).finally(() => (isAnswered = true));
    await told;
    expect([await send("small"), isAnswered]).toEqual(["read 5", false]);
    holder.destroy();
    expect(await waiting).toBe("read 7");
  });
  test("one that is too large waits for nothing, and one that gets no turn in time is lost", async () => {
    await serve(50);
    places = new Places(0);
    expect([await send(LARGE), await send("x".repeat(LIMIT + 1))]).toEqual([
      '{"isLost":true}',
      `{"tooLargeBytes":${LIMIT + 1}}`,
    ]);
  });
  test("a sender who leaves the line takes no place with him", async () => {
    await serve();
    const holder = await stay();
    const leaving = await stay();
    leaving.destroy();
    holder.destroy();
    expect([await send(LARGE), await send(LARGE)]).toEqual(["read 1500000", "read 1500000"]);
  });
});
