import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { openGateway, type TestGateway } from "../../apps/gateway/test/support/gateway.ts";
import { restReference } from "./rest-reference.mjs";

let g: TestGateway;
beforeAll(async () => void (g = await openGateway()));
afterAll(() => g.close());

test("docs/rest-reference.md equals the served document (regenerate it with tools/docs/rest-reference.mjs)", async () => {
  const written = await readFile(new URL("../../docs/rest-reference.md", import.meta.url), "utf8");
  expect(written).toBe(restReference((await g.api.call("GET", "/api/v1/openapi.json")).body));
});
