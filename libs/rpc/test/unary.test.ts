import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { Code, ConnectError, createClient, type ConnectRouter, type Transport } from "@connectrpc/connect";
import { compressionGzip, createConnectTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { events, orchestrator } from "@millwright/contracts";
import { Metrics } from "@millwright/telemetry";
import { aCaller, domainError, memoryLog } from "@millwright/testing";
import {
  call,
  CallerSigner,
  CallerVerifier,
  clientFor,
  http1Transport,
  mountHttp1,
  serveHttp2,
  upstreamTransport,
} from "../src/index.ts";

const signer = await CallerSigner.create("gateway");
const caller = async () => ({ headers: { "millwright-caller": await signer.sign(aCaller()) } });
/** Larger than a window of HTTP/2, so that it arrives in many pieces. */
const LARGE = "x".repeat(5_000_000);

const serverOptions = {
  service: "orchestrator",
  verifier: new CallerVerifier([signer.jwk]),
  log: memoryLog(),
  metrics: new Metrics(),
};
const routes = (router: ConnectRouter): void => {
  router.service(events.EventFeedService, {
    read: (request, { responseHeader, responseTrailer }) => {
      responseHeader.set("x-answer", "header");
      responseTrailer.set("x-answer", "trailer");
      return { logUid: request.types.join() };
    },
  });
  router.service(orchestrator.RunService, { getRun: () => Promise.reject(new Error("hunter2")) });
};

let url: string;
let http1Url: string;
let closers: (() => unknown)[];
beforeEach(async () => {
  const server = await serveHttp2(routes, serverOptions, { port: 0 });
  const http1 = http.createServer(mountHttp1(routes, serverOptions, "/rpc"));
  await once(http1.listen(0, "127.0.0.1"), "listening");
  url = `http://127.0.0.1:${server.port}`;
  http1Url = `http://127.0.0.1:${(http1.address() as AddressInfo).port}/rpc`;
  closers = [() => server.close(0), () => (http1.close(), http1.closeAllConnections())];
});
afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});

function ours(at = url): Transport {
  const transport = upstreamTransport([at]);
  closers.push(() => transport.close());
  return transport;
}
const connect = (options: { useBinaryFormat?: boolean; sendCompression?: typeof compressionGzip }): Transport =>
  createConnectTransport({ baseUrl: url, httpVersion: "2", compressMinBytes: 1, ...options });

test.each([
  ["our client", () => ours()],
  ["Connect's client with binary messages", () => connect({ useBinaryFormat: true })],
  ["Connect's client with JSON", () => connect({ useBinaryFormat: false })],
  ["Connect's client with compression", () => connect({ useBinaryFormat: true, sendCompression: compressionGzip })],
  ["a worker's client over HTTP/1.1", () => http1Transport(http1Url)],
  [
    "a client over HTTP/1.1 with JSON",
    () => createConnectTransport({ baseUrl: http1Url, httpVersion: "1.1", useBinaryFormat: false }),
  ],
])("%s sends and receives messages of any size, headers and trailers", async (_name, transport) => {
  const client = createClient(events.EventFeedService, transport());
  const received: unknown[] = [];
  const options = {
    ...(await caller()),
    onHeader: (header: Headers) => received.push(header.get("x-answer")),
    onTrailer: (trailer: Headers) => received.push(trailer.get("x-answer")),
  };
  expect((await client.read({ types: [LARGE] }, options)).logUid).toBe(LARGE);
  expect((await client.read({}, options)).logUid).toBe("");
  expect(received).toEqual(["header", "trailer", "header", "trailer"]);
});

test("our client and Connect's get the same error", async () => {
  const failure = async (transport: Transport) => {
    const error = await createClient(orchestrator.RunService, transport)
      .getRun({ runUid: "r" }, await caller())
      .catch((thrown: unknown) => ConnectError.from(thrown));
    const { code, rawMessage, details } = error as ConnectError;
    return { code, rawMessage, details: details.map((detail) => ("type" in detail ? detail.type : undefined)) };
  };
  const expected = await failure(connect({ useBinaryFormat: true }));
  expect(expected.code).toBe(Code.Internal);
  expect(await failure(ours())).toEqual(expected);
  expect(await failure(http1Transport(http1Url))).toEqual(expected);
});

/** Sends a request by hand. Returns status, body and whether the server has ended the request. */
async function send(headers: Record<string, string>, body: Buffer | undefined) {
  const session = http2.connect(url);
  closers.push(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": "/millwright.events.v1.EventFeedService/Read",
    "content-type": "application/proto",
    ...headers,
  });
  stream.on("error", () => {});
  if (body) stream.end(body);
  const [response] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
  let text = "";
  for await (const chunk of stream) text += String(chunk);
  return { status: response[":status"], body: text };
}
const token = async () => ({ "millwright-caller": await signer.sign(aCaller()) });

test("a call without a caller is rejected before its message is sent", async () => {
  expect(await send({}, undefined)).toMatchObject({ status: 401, body: expect.stringContaining("unauthenticated") });
});

test("over HTTP/1.1, too", async () => {
  const request = http.request(`${http1Url}/millwright.events.v1.EventFeedService/Read`, {
    method: "POST",
    headers: { "content-type": "application/proto" },
  });
  request.on("error", () => {});
  closers.push(() => request.destroy());
  request.flushHeaders();
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  expect(response.statusCode).toBe(401);
});

test("a message that cannot be parsed, one beyond the limit, and an invalid deadline are rejected", async () => {
  expect(await send(await token(), Buffer.from([0xff]))).toMatchObject({
    status: 400,
    body: expect.stringContaining("invalid_argument"),
  });
  expect(await send(await token(), Buffer.alloc(64 * 1024 * 1024 + 1))).toMatchObject({
    status: 429,
    body: expect.stringContaining("resource_exhausted"),
  });
  expect(await send({ ...(await token()), "connect-timeout-ms": "soon" }, Buffer.alloc(0))).toMatchObject({
    status: 400,
  });
});

test("a deadline beyond the longest timer is no deadline", async () => {
  const client = clientFor(events.EventFeedService, ours(), { signer });
  expect((await client.read({ types: ["a"] }, call(aCaller(), { timeoutMs: 9_999_999_999 }))).logUid).toBe("a");
});

test.each([
  ["503 of a proxy", 503, "text/html", "service_unavailable"],
  ["200 with a page", 200, "text/html", "unexpected_answer"],
  ["a problem that is no JSON", 500, "application/json", "unexpected_answer"],
])("%s is an error of the call", async (_name, status, type, reason) => {
  const server = http2.createServer();
  server.on("stream", (stream) => {
    stream.respond({ ":status": status, "content-type": type });
    stream.end("<html>");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  closers.push(() => server.close());
  const transport = ours(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await expect(clientFor(events.EventFeedService, transport, { signer }).read({}, call(aCaller()))).rejects.toEqual(
    domainError({ reason }),
  );
});
