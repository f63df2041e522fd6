import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { openDoor, type Door } from "./support/door.ts";

let door: Door;
beforeAll(async () => (door = await openDoor()));
afterAll(() => door.close());

const ALL = "/api/v1/factory-files/schemas";
const BUNDLE = `${ALL}/v1alpha1`;
const DOCUMENTS = ["common", "factory", "agent", "automation", "runner", "scorer", "webhook", "benchmark_suite", "benchmark_suite_task"].map((name) => `${name}.schema.json`);

test("the versions are listed with where their documents are", async () => {
  const { status, body } = await door.call("GET", ALL);
  expect([status, body]).toEqual([200, { current_version: "v1alpha1", versions: [{ schema_version: "v1alpha1", schema_url: BUNDLE }] }]);
  expect((await door.call("GET", body.versions[0].schema_url)).status).toBe(200);
});

test("a bundle has every document by its id, each of which can be had alone", async () => {
  const { body } = await door.call("GET", BUNDLE);
  expect([body.schema_version, Object.keys(body.documents).toSorted()]).toEqual(["v1alpha1", DOCUMENTS.toSorted()]);
  for (const name of DOCUMENTS) {
    const alone = await door.call("GET", `${BUNDLE}/${name}`);
    expect([alone.status, alone.body, alone.body.$id]).toEqual([200, body.documents[name], name]);
  }
});

describe.each([ALL, BUNDLE, `${BUNDLE}/agent.schema.json`])("%s", (path) => {
  test("is not sent again to a client that has it", async () => {
    const first = await door.call("GET", path);
    const etag = first.headers.get("etag")!;
    expect([etag, first.headers.get("content-type")]).toEqual([expect.stringMatching(/^"[\w-]{22}"$/), "application/json; charset=utf-8"]);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await door.call("GET", path, { headers: { "if-none-match": known } });
      expect([again.status, again.headers.get("etag"), again.body]).toEqual([304, etag, ""]);
    }
    expect((await door.call("GET", path, { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  });

  test("needs a key", async () => {
    expect((await door.call("GET", path, { key: null })).status).toBe(401);
  });
});

test.each([`${ALL}/v2`, `${BUNDLE}/nothing.schema.json`, `${BUNDLE}/agent.md`, `${BUNDLE}/constructor`])("%s is not there", async (path) => {
  expect((await door.call("GET", path)).status).toBe(404);
});

test("editors have the documents without a key, with the references beside each other", async () => {
  const { status, headers, body } = await door.call("GET", "/schemas/v1alpha1/agent.schema.json", { key: null });
  expect([status, headers.get("content-type")]).toEqual([200, "application/schema+json; charset=utf-8"]);
  const { pathname } = new URL(body.$ref, "http://mill.example/schemas/v1alpha1/agent.schema.json");
  expect((await door.call("GET", pathname, { key: null })).status).toBe(200);
  expect((await door.call("GET", "/schemas/v1alpha1/agent.schema.json", { key: null, headers: { "if-none-match": headers.get("etag")! } })).status).toBe(304);
});
