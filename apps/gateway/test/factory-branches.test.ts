import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { aFactory, at, CREATED, FACTORY, TEAM, UPDATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const BRANCH = "0198c2d0-0000-7000-8000-00000000b001";
const LIST = `/api/v1/factory/${FACTORY}/branches`;
const PATH = `${LIST}/${BRANCH}`;
const SHA = "0123456789abcdef0123456789abcdef01234567";
const diagnostic = {
  path: "factory.yaml",
  line: 1,
  column: 7,
  code: "FF_MISSING_FIELD",
  message: "A name is required.",
  severity: "error",
};
const fresh = {
  uid: BRANCH,
  factoryUid: FACTORY,
  teamUid: TEAM,
  name: "main",
  repository: { owner: "o", repo: "r", codeForge: "NONE" },
  state: "ACTIVE",
  freshness: "UNKNOWN",
  isProduction: true,
  isServing: false,
  createdAt: at(CREATED),
  updatedAt: at(CREATED),
};
const shownFresh = {
  uid: BRANCH,
  factory_uid: FACTORY,
  team_uid: TEAM,
  name: "main",
  repository: { owner: "o", repo: "r", code_forge: "NONE" },
  state: "ACTIVE",
  freshness: "UNKNOWN",
  is_production: true,
  is_serving: false,
  registered_head_sha: null,
  applied_sha: null,
  last_applied_at: null,
  last_checked_at: null,
  last_error: null,
  created_at: CREATED,
  updated_at: CREATED,
};
const full = {
  ...fresh,
  state: "DELETED",
  registeredHeadSha: SHA,
  appliedSha: SHA,
  lastAppliedAt: at(UPDATED),
  lastCheckedAt: at(UPDATED),
  deletedAt: at(UPDATED),
  lastError: { code: "definition_invalid", message: "Wrong.", diagnostics: [diagnostic] },
};
const shownFull = {
  ...shownFresh,
  state: "DELETED",
  registered_head_sha: SHA,
  applied_sha: SHA,
  last_applied_at: UPDATED,
  last_checked_at: UPDATED,
  deleted_at: UPDATED,
  last_error: { code: "definition_invalid", message: "Wrong.", diagnostics: [diagnostic] },
};

const getFactory = { factory: aFactory() };
const answers = {
  getFactory,
  getBranch: { branch: fresh },
  listBranches: { branches: [fresh, full] },
  trackBranch: { branch: fresh, created: true },
  deleteBranch: {},
  applyBranch: { branch: full },
};
const asked = (method: string) => api.calls.find((call) => call.method === method)?.request;
const hiddenFactory = upstreamError("not_found", "factory_not_found");
const hidden = upstreamError("not_found", "branch_not_found");
const notAllowed = upstreamError("permission_denied", "not_authorized");
const refusing = (
  method: string,
  path: string,
  body: object | undefined,
  rpc: string,
  ...errors: ReturnType<typeof upstreamError>[]
) =>
  testUpstreamErrors(
    () => api,
    () => api.call(method, path, body === undefined ? {} : { body }),
    [rpc, ...errors],
    answers,
  );

test.each([
  [fresh, shownFresh],
  [full, shownFull],
  [
    { ...fresh, state: "FAILED", freshness: "STALE" },
    { ...shownFresh, state: "FAILED", freshness: "STALE" },
  ],
])("a branch is shown (%#)", async (branch, shown) => {
  api.respondWith({ ...answers, getBranch: { branch } });
  expect(await api.call("GET", PATH)).toMatchObject({ status: 200, body: shown });
  expect(Object.keys((await api.call("GET", PATH)).body).toSorted()).toEqual(Object.keys(shown).toSorted());
  expect(asked("getBranch")).toMatchObject({ factoryUid: FACTORY, branchUid: BRANCH });
});
refusing(
  "GET",
  PATH,
  undefined,
  "getBranch",
  hiddenFactory,
  hidden,
  notAllowed,
  upstreamError("unavailable", "unavailable"),
);

test("the tracked branches are listed", async () => {
  api.respondWith(answers);
  expect((await api.call("GET", LIST)).body).toEqual({ branches: [shownFresh, shownFull] });
});
refusing("GET", LIST, undefined, "listBranches", hiddenFactory, notAllowed);

describe("tracking", () => {
  test.each([
    [true, 201],
    [false, 200],
  ])("what is new (%p) is %i", async (created, status) => {
    api.respondWith({ ...answers, trackBranch: { branch: fresh, created } });
    expect(await api.call("POST", LIST, { body: { name: "b/1" } })).toMatchObject({ status, body: shownFresh });
    expect(asked("trackBranch")).toMatchObject({ factoryUid: FACTORY, name: "b/1" });
  });
  refusing(
    "POST",
    LIST,
    { name: "b" },
    "trackBranch",
    hiddenFactory,
    notAllowed,
    upstreamError("conflict", "source_not_git"),
    upstreamError("invalid_argument", "too_many_branches"),
  );
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [{}, { name: "" }, { name: 1 }, { name: "x".repeat(256) }, []].map((body) => ["POST", LIST, body] as const),
  );
});

describe("retiring", () => {
  test.each([BRANCH, BRANCH.toUpperCase(), "no-uid"])("%s is 204", async (uid) => {
    api.respondWith(answers);
    expect((await api.call("DELETE", `${LIST}/${uid}`)).status).toBe(204);
    expect(asked("deleteBranch")).toMatchObject({ factoryUid: FACTORY, branchUid: uid.toLowerCase() });
  });
  refusing(
    "DELETE",
    PATH,
    undefined,
    "deleteBranch",
    hiddenFactory,
    notAllowed,
    upstreamError("conflict", "production_branch"),
    upstreamError("unavailable", "unavailable"),
  );
});

describe("applying", () => {
  test("ignores every member of the body, and returns the branch's status", async () => {
    api.respondWith(answers);
    expect(
      await api.call("POST", `${PATH}/apply`, {
        body: { sha: "f".repeat(40), repository_url: "https://elsewhere.example/r.git" },
      }),
    ).toMatchObject({ status: 200, body: shownFull });
    const { $typeName, ...request } = asked("applyBranch");
    expect([$typeName, request]).toEqual([expect.any(String), { factoryUid: FACTORY, branchUid: BRANCH }]);
  });
  test("an invalid definition returns every diagnostic", async () => {
    const diagnostics = Array.from({ length: 50 }, (_one, index) => ({ ...diagnostic, line: index + 1 }));
    api.respondWith({
      ...answers,
      applyBranch: upstreamError("invalid_argument", "definition_invalid", { details: diagnostics }),
    });
    expect(await api.call("POST", `${PATH}/apply`)).toMatchObject({
      status: 400,
      body: { error_code: "invalid_request", reason: "definition_invalid", diagnostics },
    });
  });
  refusing(
    "POST",
    `${PATH}/apply`,
    undefined,
    "applyBranch",
    hiddenFactory,
    hidden,
    notAllowed,
    upstreamError("conflict", "branch_deleted"),
    upstreamError("conflict", "branch_head_unknown"),
    upstreamError("conflict", "apply_in_progress", { retryable: true }),
    upstreamError("unavailable", "source_unreachable"),
    upstreamError("invalid_argument", "source_refused"),
  );
});

describe("without the capability of the factory's team", () => {
  afterEach(() => void (api.capabilities.factoryBranches = true));
  const requests: [string, string, { body?: object }][] = [
    ["GET", LIST, {}],
    ["POST", LIST, { body: { name: "b" } }],
    ["GET", PATH, {}],
    ["DELETE", PATH, {}],
    ["POST", `${PATH}/apply`, {}],
  ];
  test.each(requests)("%s %s is refused", async (method, path, request) => {
    api.capabilities.factoryBranches = false;
    api.respondWith(answers);
    expect(await api.call(method, path, request)).toMatchObject({
      status: 403,
      body: { error_code: "feature_not_available", reason: "factory_branches_off", retryable: false },
    });
    expect(api.calls.map((call) => call.method)).toEqual(["getFactory"]);
  });
  test.each(requests)("%s %s of a hidden factory returns 404", async (method, path, request) => {
    api.capabilities.factoryBranches = false;
    api.respondWith({ ...answers, getFactory: hiddenFactory });
    expect(await api.call(method, path, request)).toMatchObject({
      status: 404,
      body: { reason: "factory_not_found" },
    });
  });
});

testRejectedBeforeUpstreams(() => api, 404, [
  ["GET", "/api/v1/factory/x/branches"],
  ["GET", `${LIST}/x`],
  ["POST", `${LIST}/x/apply`],
  ["DELETE", `/api/v1/factory/x/branches/${BRANCH}`],
]);
