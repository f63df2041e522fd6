import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { listen, type HttpServer } from "./index.ts";

let server: HttpServer;
beforeEach(async () => {
  server = await listen("127.0.0.1", 0);
  server.serve((_request, response) => void response.end("served"));
});
afterEach(() => server.stop());

const PROBLEM = {
  status: 400,
  error_code: "invalid_request",
  retryable: false,
  type: "/errors/invalid_request",
  trace_id: expect.stringMatching(/^[0-9a-f]{32}$/),
};

test.each([20_000, 500_000])("a query string of %i bytes gets problem+json that names the limit", async (length) => {
  const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/agent/runs?q=${"x".repeat(length)}`);
  expect([response.status, response.headers.get("content-type")]).toEqual([400, "application/problem+json"]);
  expect(await response.json()).toMatchObject({
    ...PROBLEM,
    reason: "request_head_too_large",
    detail: expect.stringContaining("16384 bytes"),
  });
});

test("a query string below the limit is accepted", async () => {
  expect(await (await fetch(`http://127.0.0.1:${server.port}/?q=${"x".repeat(15_000)}`)).text()).toBe("served");
});

test("a request that is not HTTP gets problem+json", async () => {
  const socket = connect(server.port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => (text += chunk.toString("utf8")));
  socket.write("nonsense\r\n\r\n");
  await once(socket, "end");
  const [head = "", body = ""] = text.split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1\.1 400 Bad Request\r\ncontent-type: application\/problem\+json\r\n/);
  expect(JSON.parse(body)).toMatchObject({ ...PROBLEM, reason: "malformed_request" });
});
