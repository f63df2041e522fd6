import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { at, FACTORY, UPDATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const PATH = `/api/v1/factory/${FACTORY}/source`;
const files = [{ path: "factory.yaml", content: "name: Roofs\n" }];
const diagnostic = {
  path: "factory.yaml",
  line: 1,
  column: 7,
  code: "FF_REQUIRED",
  message: "A name is required.",
  severity: "error",
};
const item = { kind: "agent", name: "foreman", action: "create", changedFields: ["prompt"] };
const shownItem = { kind: "agent", name: "foreman", action: "create", changed_fields: ["prompt"] };
const none = { kind: "none", directory: "", files: [], activeVersion: 0n, state: "NONE", diagnostics: [] };
const shownNone = {
  kind: "none",
  repository_url: null,
  branch: null,
  directory: "",
  secret_name: null,
  username: null,
  files: [],
  active_version: 0,
  active_revision: null,
  state: "NONE",
  diagnostics: [],
  applied_at: null,
};
const git = {
  ...none,
  kind: "git",
  repositoryUrl: "/srv/git/o/r.git",
  branch: "main",
  directory: "mill",
  activeVersion: 3n,
  activeRevision: "abc",
  state: "APPLIED",
  diagnostics: [diagnostic],
  appliedAt: at(UPDATED),
};
const shownGit = {
  ...shownNone,
  kind: "git",
  repository_url: "/srv/git/o/r.git",
  branch: "main",
  directory: "mill",
  active_version: 3,
  active_revision: "abc",
  state: "APPLIED",
  diagnostics: [diagnostic],
  applied_at: UPDATED,
};
const secret = { ...git, secretName: "GIT", username: "u" };
const shownSecret = { ...shownGit, secret_name: "GIT", username: "u" };
const notFound = upstreamError("not_found", "factory_not_found");
const notAllowed = upstreamError("permission_denied", "not_authorized");

describe("the source", () => {
  test.each([
    [none, shownNone],
    [git, shownGit],
    [secret, shownSecret],
    [
      { ...none, kind: "files", files },
      { ...shownNone, kind: "files", files },
    ],
  ])("is shown (%#)", async (source, shown) => {
    api.respondWith({ getSource: { source } });
    expect((await api.call("GET", PATH)).body).toEqual(shown);
    expect(api.calls[0]!.request).toMatchObject({ factoryUid: FACTORY });
  });
  test.each<[object, object]>([
    [{ files }, { kind: "files", files }],
    [
      { repository_url: "/srv/git/o/r.git" },
      { kind: "git", repositoryUrl: "/srv/git/o/r.git", branch: "main", directory: "" },
    ],
    [
      { repository_url: "u", branch: "b", directory: "d" },
      { kind: "git", repositoryUrl: "u", branch: "b", directory: "d" },
    ],
    [
      { repository_url: "u", secret_name: "S", username: "n" },
      { kind: "git", repositoryUrl: "u", secretName: "S", username: "n" },
    ],
  ])("is replaced by %j", async (body, source) => {
    api.respondWith({ putSource: { source: git } });
    expect(await api.call("PUT", PATH, { body })).toMatchObject({ status: 200, body: shownGit });
    expect(api.calls[0]!.request).toMatchObject({ factoryUid: FACTORY, source });
  });
  test("may have 20 MiB", async () => {
    api.respondWith({ putSource: { source: none } });
    expect(
      (await api.call("PUT", PATH, { body: { files: [{ path: "a.md", content: "x".repeat(20 * 1024 * 1024) }] } }))
        .status,
    ).toBe(200);
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", PATH),
    ["getSource", notFound, notAllowed],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("PUT", PATH, { body: { files } }),
    ["putSource", notFound, notAllowed, upstreamError("invalid_argument", "source_invalid")],
  );
  const wrong = [
    {},
    { files: [] },
    { files: [{ path: "", content: "" }] },
    { files: [{ path: "a" }] },
    { files: {} },
    { repository_url: "" },
    { repository_url: "u", branch: "" },
    { repository_url: 1 },
    { repository_url: "u", secret_name: "" },
    { repository_url: "u", secret_name: "S", username: 1 },
    [],
  ];
  testRejectedBeforeUpstreams(
    () => api,
    400,
    wrong.map((body) => ["PUT", PATH, body] as const),
  );
});

describe("checking", () => {
  test("validate reports all diagnostics and no plan", async () => {
    api.respondWith({
      checkSource: { valid: false, diagnostics: [diagnostic, { ...diagnostic, severity: "warning" }], plan: [] },
    });
    expect(await api.call("POST", `${PATH}/validate`, { body: { files } })).toMatchObject({
      status: 200,
      body: { valid: false, diagnostics: [diagnostic, { ...diagnostic, severity: "warning" }] },
    });
    expect(api.calls[0]!.request).toMatchObject({ factoryUid: FACTORY, files, plan: false });
  });
  test.each([[undefined], [{}]])("plan with the body %j reads the registered source", async (body) => {
    api.respondWith({ checkSource: { valid: true, diagnostics: [], plan: [item] } });
    expect((await api.call("POST", `${PATH}/plan`, body === undefined ? {} : { body })).body).toEqual({
      valid: true,
      diagnostics: [],
      plan: [shownItem],
    });
    expect(api.calls[0]!.request).toMatchObject({ factoryUid: FACTORY, files: [], plan: true });
  });
  for (const verb of ["validate", "plan"]) {
    testUpstreamErrors(
      () => api,
      () => api.call("POST", `${PATH}/${verb}`),
      [
        "checkSource",
        notFound,
        notAllowed,
        upstreamError("invalid_argument", "source_missing"),
        upstreamError("invalid_argument", "source_unreachable"),
      ],
    );
    testRejectedBeforeUpstreams(
      () => api,
      400,
      [{ files: 1 }, { files: [{ path: 1, content: "" }] }, []].map(
        (body) => ["POST", `${PATH}/${verb}`, body] as const,
      ),
    );
  }
});

describe("drift", () => {
  const head = { state: "DIFFERS", revision: "def", plan: [item], diagnostics: [diagnostic] };
  test.each<[object, object]>([
    [
      { activeVersion: 3n, activeRevision: "abc", serving: [item], head },
      {
        active_version: 3,
        active_revision: "abc",
        serving: [shownItem],
        head: { ...head, plan: [shownItem], error: null },
      },
    ],
    [
      { activeVersion: 0n, serving: [], head: { state: "UNKNOWN", errorCode: "branch_missing", errorMessage: "No." } },
      {
        active_version: 0,
        active_revision: null,
        serving: [],
        head: {
          state: "UNKNOWN",
          revision: null,
          plan: [],
          diagnostics: [],
          error: { code: "branch_missing", message: "No." },
        },
      },
    ],
  ])("is shown (%#)", async (drift, shown) => {
    api.respondWith({ getDrift: drift });
    expect((await api.call("GET", `${PATH}/drift`)).body).toEqual(shown);
    expect(api.calls[0]!.request).toMatchObject({ factoryUid: FACTORY });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${PATH}/drift`),
    [
      "getDrift",
      notFound,
      notAllowed,
      upstreamError("conflict", "source_missing"),
      upstreamError("unavailable", "unavailable"),
    ],
  );
});

describe("applying", () => {
  test("returns the new state and the changes", async () => {
    api.respondWith({ applySource: { source: git, plan: [item] } });
    expect((await api.call("POST", `${PATH}/apply`)).body).toEqual({ source: shownGit, plan: [shownItem] });
  });
  test("an invalid definition returns every diagnostic", async () => {
    const diagnostics = Array.from({ length: 50 }, (_one, index) => ({ ...diagnostic, line: index + 1 }));
    api.respondWith({ applySource: upstreamError("invalid_argument", "definition_invalid", { details: diagnostics }) });
    expect(await api.call("POST", `${PATH}/apply`)).toMatchObject({
      status: 400,
      body: { error_code: "invalid_request", reason: "definition_invalid", diagnostics },
    });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("POST", `${PATH}/apply`),
    [
      "applySource",
      notFound,
      notAllowed,
      upstreamError("invalid_argument", "source_missing"),
      upstreamError("conflict", "apply_superseded"),
      upstreamError("invalid_argument", "source_unreachable"),
    ],
  );
});

testRejectedBeforeUpstreams(() => api, 404, [
  ["GET", "/api/v1/factory/x/source"],
  ["PUT", "/api/v1/factory/x/source", { files }],
  ["POST", "/api/v1/factory/x/source/plan"],
  ["POST", "/api/v1/factory/x/source/apply"],
]);
