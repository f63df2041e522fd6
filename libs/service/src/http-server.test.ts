import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { listen, type HttpServer } from "./index.ts";

let server: HttpServer;
beforeEach(async () => {
  server = await listen("127.0.0.1", 0);
  server.serve((_request, response) => void response.end("served"));
});
afterEach(() => server.stop());

test("announces a keep-alive timeout of more than a minute", async () => {
  const response = await fetch(`http://127.0.0.1:${server.port}/`);
  await response.text();
  expect([response.headers.get("connection"), response.headers.get("keep-alive")]).toEqual([
    "keep-alive",
    "timeout=75",
  ]);
});

test("serves while it drains, and responses close their connections", async () => {
  server.drain();
  const response = await fetch(`http://127.0.0.1:${server.port}/`);
  expect([await response.text(), response.headers.get("connection")]).toEqual(["served", "close"]);
});
