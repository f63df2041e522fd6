import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { startRestApi, type RestApi } from "./support/rest-api.ts";

let api: RestApi;
beforeAll(async () => (api = await startRestApi()));
afterAll(() => api.close());

const ALL = "/api/v1/factory-files/schemas";
const BUNDLE = `${ALL}/v1alpha1`;
const DOCUMENTS = [
  "common",
  "factory",
  "agent",
  "automation",
  "runner",
  "scorer",
  "webhook",
  "benchmark_suite",
  "benchmark_suite_task",
].map((name) => `${name}.schema.json`);

test("lists the schema versions with the URLs of their documents", async () => {
  const { status, body } = await api.call("GET", ALL);
  expect([status, body]).toEqual([
    200,
    { current_version: "v1alpha1", versions: [{ schema_version: "v1alpha1", schema_url: BUNDLE }] },
  ]);
  expect((await api.call("GET", body.versions[0].schema_url)).status).toBe(200);
});

test("returns a bundle with every document by id, and each document alone", async () => {
  const { body } = await api.call("GET", BUNDLE);
  expect([body.schema_version, Object.keys(body.documents).toSorted()]).toEqual(["v1alpha1", DOCUMENTS.toSorted()]);
  for (const name of DOCUMENTS) {
    const alone = await api.call("GET", `${BUNDLE}/${name}`);
    expect([alone.status, alone.body, alone.body.$id]).toEqual([200, body.documents[name], name]);
  }
});

describe.each([ALL, BUNDLE, `${BUNDLE}/agent.schema.json`])("%s", (path) => {
  test("returns 304 to a client that has the current version", async () => {
    const first = await api.call("GET", path);
    const etag = first.headers.get("etag")!;
    expect([etag, first.headers.get("content-type")]).toEqual([
      expect.stringMatching(/^"[\w-]{22}"$/),
      "application/json; charset=utf-8",
    ]);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const again = await api.call("GET", path, { headers: { "if-none-match": known } });
      expect([again.status, again.headers.get("etag"), again.body]).toEqual([304, etag, ""]);
    }
    expect((await api.call("GET", path, { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  });

  test("requires an API key", async () => {
    expect((await api.call("GET", path, { key: null })).status).toBe(401);
  });
});

test.each([`${ALL}/v2`, `${BUNDLE}/nothing.schema.json`, `${BUNDLE}/agent.md`, `${BUNDLE}/constructor`])(
  "returns 404 for %s",
  async (path) => {
    expect((await api.call("GET", path)).status).toBe(404);
  },
);

test("serves the documents to editors without a key, with relative references", async () => {
  const { status, headers, body } = await api.call("GET", "/schemas/v1alpha1/agent.schema.json", { key: null });
  expect([status, headers.get("content-type")]).toEqual([200, "application/schema+json; charset=utf-8"]);
  const { pathname } = new URL(body.$ref, "http://mill.example/schemas/v1alpha1/agent.schema.json");
  expect((await api.call("GET", pathname, { key: null })).status).toBe(200);
  expect(
    (
      await api.call("GET", "/schemas/v1alpha1/agent.schema.json", {
        key: null,
        headers: { "if-none-match": headers.get("etag")! },
      })
    ).status,
  ).toBe(304);
});

describe("validation of files", () => {
  const FILES = [
    {
      path: "factory.yaml",
      content: "schemaVersion: v1alpha1\nname: Works\nrepositories: []\nagentDefaults: {model: auto}\n",
    },
    { path: "agents/foreman/agent.md", content: "---\nagentType: FOREMAN\n---\nWork.\n" },
    {
      path: "automations/a/automation.md",
      content: "---\ntriggers: [{provider: linear, event: issue_created, filter: {teams: [Core]}}]\n---\nGo.\n",
    },
  ];
  const validate = (files: unknown) => api.call("POST", "/api/v1/factory-files/validate", { body: { files } });

  test("returns what only an apply can check for a valid tree", async () => {
    const { status, body } = await validate(FILES);
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({
        schema_version: "v1alpha1",
        valid: true,
        deferred_resolutions: [
          { path: "automations/a/automation.md", field: "triggers[0].filter.teams", kind: "linear_name_alias" },
        ],
        state_dependent_checks_not_run: [
          "provider_alias_resolution",
          "model",
          "environment",
          "secret",
          "runner_reference",
          "mcp_server",
          "integration",
          "worker_host",
          "entitlement",
        ],
        validation_scope: { parser: "checked", state_independent: "checked", state_dependent: "not_checked" },
      }),
    ]);
    expect(api.calls).toEqual([]);
  });

  test("returns 200 errors at their 200 places", async () => {
    const content = `---\n${Array.from({ length: 200 }, (_, n) => `wrong${n}: x`).join("\n")}\n---\nWork.\n`;
    const { body } = await validate([...FILES, { path: "agents/hand/agent.md", content }]);
    const errors = body.diagnostics.filter(({ severity }: any) => severity === "error");
    expect([body.valid, errors.map(({ path, line, column, code }: any) => [path, line, column, code])]).toEqual([
      false,
      Array.from({ length: 200 }, (_, n) => ["agents/hand/agent.md", n + 2, 1, "FF_UNKNOWN_FIELD"]),
    ]);
  });

  test("does not check unreadable files further", async () => {
    const { body } = await validate([...FILES, { path: "agents/hand/agent.md", content: "no frontmatter" }]);
    expect([body.valid, body.validation_scope.state_independent]).toEqual([false, "not_run"]);
  });

  test.each([undefined, "x", [{ path: "a" }], Array.from({ length: 2_001 }, () => ({ path: "a", content: "" }))])(
    "returns 400 for a body without files",
    async (files) => {
      expect((await validate(files)).status).toBe(400);
    },
  );
});
