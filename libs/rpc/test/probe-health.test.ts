import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { afterEach, expect, test } from "@jest/globals";
import { Metrics } from "@millwright/telemetry";
import { memoryLog } from "@millwright/testing";
import { CallerVerifier, probeHealth, serveHttp2, type Http2Listen } from "../src/index.ts";

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function serve(listener: Partial<Http2Listen>): Promise<number> {
  const options = { service: "x", verifier: new CallerVerifier([]), log: memoryLog(), metrics: new Metrics() };
  const server = await serveHttp2(() => {}, options, { port: 0, isReady: async () => true, ...listener });
  closing.push(() => server.close(0));
  return server.port;
}

test("a ready server has no problem, one that is not ready names its status", async () => {
  let isReady = true;
  const url = `http://127.0.0.1:${await serve({ isReady: async () => isReady })}`;
  expect(await probeHealth(url)).toBeUndefined();
  isReady = false;
  expect(await probeHealth(url)).toBe("the server reports NOT_SERVING");
});

test("probes a server of another gRPC implementation in the same way", async () => {
  const server = new Server();
  const check = {
    path: "/grpc.health.v1.Health/Check",
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes: Buffer) => bytes,
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  };
  const SERVING = Buffer.from([8, 1]);
  server.addService(
    { check },
    {
      check: (_call: unknown, answer: (error: null, bytes: Buffer) => void) => answer(null, SERVING),
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    ),
  );
  closing.push(async () => server.forceShutdown());
  expect(await probeHealth(`http://127.0.0.1:${port}`)).toBeUndefined();
});

test("TLS needs the certificate authority and the right name", async () => {
  const pem = (name: string) => readFileSync(new URL(`tls/${name}.pem`, import.meta.url), "utf8");
  const port = await serve({ tls: { cert: pem("cert"), key: pem("key") } });
  expect(await probeHealth(`https://localhost:${port}`)).toMatch(/self-signed certificate/);
  // The authority is accepted; the name in the certificate is another one.
  expect(await probeHealth(`https://localhost:${port}`, { ca: pem("cert") })).toMatch(/altnames: DNS:neighbour\.test/);
});

test("an address without a server, and one that does not respond, are problems", async () => {
  const silent = createServer((socket) => socket.resume()).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  expect(await probeHealth(url, { timeoutMs: 50 })).toMatch(/timed out/);
  await new Promise((resolve) => silent.close(resolve));
  expect(await probeHealth(url)).toMatch(/ECONNREFUSED/);
});

test("an HTTP/1.1 server, such as an operations port, is a problem", async () => {
  const server = createServer((socket) => socket.resume().end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await probeHealth(url)).toBe("the server does not speak HTTP/2 (Protocol error)");
  await new Promise((resolve) => server.close(resolve));
  expect(await probeHealth("ftp://127.0.0.1")).toMatch(/protocol "ftp:"/);
});
