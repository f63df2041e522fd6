import { afterEach, expect, test } from "@jest/globals";
import { Lifecycle } from "@millwright/lifecycle";
import { Metrics } from "@millwright/telemetry";
import { handleOperations, listen, type HttpServer, type Operations } from "./index.ts";

let server: HttpServer;
afterEach(() => server.stop());

async function ask(path: string, operations: Partial<Operations> = {}): Promise<{ status: number; body: unknown }> {
  server = await listen("127.0.0.1", 0);
  server.serve(handleOperations({ lifecycle: new Lifecycle(), metrics: new Metrics(), ...operations }));
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
  const text = await response.text();
  return { status: response.status, body: text.startsWith("{") ? JSON.parse(text) : text };
}

test("a live process is healthy, and ready when all of its parts are", async () => {
  expect(await ask("/healthz")).toEqual({ status: 200, body: { status: "ok" } });
  await server.stop();
  const lifecycle = new Lifecycle().add("database", { ready: () => isUp });
  let isUp = true;
  await lifecycle.start();
  expect(await ask("/readyz?verbose", { lifecycle })).toEqual({
    status: 200,
    body: { ready: true, checks: { database: "ok" } },
  });
  await server.stop();
  isUp = false;
  expect(await ask("/readyz", { lifecycle })).toEqual({
    status: 503,
    body: { ready: false, checks: { database: "failed" } },
  });
});

test("serves public keys if there are any; other paths are forwarded, or 404", async () => {
  const key = { kty: "OKP", kid: "gateway.1" };
  expect(await ask("/jwks.json", { keys: () => [key] })).toEqual({ status: 200, body: { keys: [key] } });
  await server.stop();
  expect((await ask("/jwks.json")).status).toBe(404);
  await server.stop();
  expect(await ask("/other", { others: (request, response) => void response.end(`asked for ${request.url}`) })).toEqual(
    { status: 200, body: "asked for /other" },
  );
});
