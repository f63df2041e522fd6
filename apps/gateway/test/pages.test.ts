import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { NOW, startRestApi, PUBLIC_URL, type RestApi } from "./support/rest-api.ts";
import { RUN, TEAM, USER } from "./support/people.ts";
import { anArtifact, aRun, at, CREATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const HOSTILE = `"><script>alert('x')</script>&`;
const OTHER_RUN = "0198c2d0-0000-7000-8000-000000000002";
const PR = "0198c2d0-0000-7000-8000-00000000b001";
const RUN_PATH = `/runs/${RUN}`;
const API_RUN = `/api/v1/agent/runs/${RUN}`;
const API_PR = `${API_RUN}/pull-requests/${PR}`;
const DIFF = `${RUN_PATH}/pull-requests/${PR}.diff`;
const ARTIFACT = `${RUN_PATH}/artifacts/${anArtifact().uid}`;
const owned = { uid: RUN, ownerType: "team", ownerUid: TEAM };
const viewOf = (run: Parameters<typeof api.links.sessionLink>[0] = owned) =>
  new URL(api.links.sessionLink(run)).searchParams.get("view")!;
/** Reads the API as the console does with a session link. */
const read = (path: string, view: string, method = "GET") =>
  api.call(method, path, { key: null, headers: { "x-millwright-view": view } });
/** Opens a file of the run as a browser does. */
const open = (path: string, more: { view?: string; cookie?: string } = {}) =>
  api.call("GET", more.view === undefined ? path : `${path}?view=${encodeURIComponent(more.view)}`, {
    key: null,
    ...(more.cookie ? { headers: { cookie: more.cookie } } : {}),
  });
const cookieOf = async () => {
  const { headers } = await api.call("POST", "/session", {
    key: null,
    headers: { origin: PUBLIC_URL },
    body: { key: "member" },
  });
  return headers.get("set-cookie")!.split(";")[0]!;
};

const pullRequest = {
  uid: PR,
  runUid: RUN,
  owner: "o",
  repo: "r",
  number: 3,
  url: `${PUBLIC_URL}${RUN_PATH}/pull-requests/${PR}`,
  title: HOSTILE,
  body: HOSTILE,
  headBranch: HOSTILE,
  baseBranch: "main",
  headSha: "abcdef0123456789",
  status: "open",
  createdAt: at(CREATED),
  diff: `diff --git a/x b/x\n@@ -1 +1 @@\n-${HOSTILE}\n+<b>new</b>`,
  files: [{ path: HOSTILE, additions: 1, deletions: 1 }],
};
const visible = {
  getRun: { run: aRun() },
  getTimeline: { events: [] },
  getPullRequest: pullRequest,
};
beforeEach(() => api.respondWith(visible));

describe("a session link", () => {
  test("reads its run as a viewer of the team, without a key", async () => {
    expect((await read(API_RUN, viewOf())).status).toBe(200);
    expect((await read(`${API_RUN}/timeline`, viewOf())).status).toBe(200);
    for (const { caller } of api.calls)
      expect(caller).toMatchObject({ teams: [{ teamUid: TEAM, verbs: ["run.view"] }], platformAdmin: false });
  });
  test("reads a personal run as its owner", async () => {
    await read(API_RUN, viewOf({ uid: RUN, ownerType: "user", ownerUid: USER }));
    expect(api.calls[0]!.caller).toMatchObject({ principal: { type: "user", uid: USER }, teams: [] });
  });
  test("reads the run's pull request and its diff", async () => {
    const { status, body } = await read(API_PR, viewOf());
    expect([status, body]).toEqual([
      200,
      expect.objectContaining({ run_id: RUN, title: HOSTILE, diff: pullRequest.diff, files: pullRequest.files }),
    ]);
    const diff = await open(DIFF, { view: viewOf() });
    expect([diff.status, diff.headers.get("content-type"), diff.body]).toEqual([
      200,
      "text/plain; charset=utf-8",
      pullRequest.diff,
    ]);
  });
  test("opens a plan and downloads a file, of its own run only", async () => {
    api.respondWith({
      ...visible,
      getArtifact: { artifact: anArtifact({ artifactType: "PLAN" }), data: { content: "# Plan" }, downloadUrl: "" },
    });
    expect(await open(ARTIFACT, { view: viewOf() })).toMatchObject({ status: 200, body: "# Plan" });
    api.respondWith({
      ...visible,
      getArtifact: { artifact: anArtifact(), data: {}, downloadUrl: `${PUBLIC_URL}/blobs/x` },
    });
    const file = await open(ARTIFACT, { view: viewOf() });
    expect([file.status, file.headers.get("location")]).toEqual([302, `${PUBLIC_URL}/blobs/x`]);
    api.respondWith({
      ...visible,
      getArtifact: { artifact: anArtifact({ runUid: OTHER_RUN }), data: {}, downloadUrl: `${PUBLIC_URL}/blobs/x` },
    });
    expect((await open(ARTIFACT, { view: viewOf() })).status).toBe(404);
  });
  test("does not open another run's pull request", async () => {
    api.respondWith({ ...visible, getPullRequest: { ...pullRequest, runUid: OTHER_RUN } });
    expect([(await read(API_PR, viewOf())).status, (await open(DIFF, { view: viewOf() })).status]).toEqual([404, 404]);
  });
  test("does not read lists or other runs, and writes nothing", async () => {
    for (const path of ["/api/v1/agent/runs", "/api/v1/whoami", `/api/v1/agent/runs/${OTHER_RUN}`])
      expect((await read(path, viewOf())).status).toBe(401);
    for (const path of [`${API_RUN}/cancel`, `${API_RUN}/interrupt`])
      expect((await read(path, viewOf(), "POST")).status).toBe(401);
    expect(api.calls).toEqual([]);
  });
  test.each<[string, () => string]>([
    ["of another run", () => viewOf({ ...owned, uid: OTHER_RUN })],
    ["of another run, renamed", () => viewOf({ ...owned, uid: OTHER_RUN }).replace(OTHER_RUN, RUN)],
    ["of another team", () => viewOf().replace(TEAM, USER)],
    ["cut", () => viewOf().slice(0, -1)],
    ["empty", () => ""],
  ])("with a token %s opens nothing", async (_fault, token) => {
    for (const path of [API_RUN, API_PR]) expect((await read(path, token())).status).toBe(401);
    for (const path of [DIFF, ARTIFACT]) expect((await open(path, { view: token() })).status).toBe(401);
    expect(api.calls).toEqual([]);
  });
  test("opens nothing after it has expired", async () => {
    const view = viewOf();
    api.clock.advance(26 * 3_600_000);
    expect([(await read(API_RUN, view)).status, (await open(DIFF, { view })).status]).toEqual([401, 401]);
    api.clock.set(NOW);
  });
});

test("files of a run require a session", async () => {
  expect((await open(DIFF, { cookie: `a=b; ${await cookieOf()}` })).status).toBe(200);
  expect(api.calls[0]!.caller.principal.uid).toBe(USER);
  for (const cookie of ["millwright_session=x", "millwright_session=", "other=member"])
    expect((await open(DIFF, { cookie })).status).toBe(401);
});

test("a malformed path is a 404", async () => {
  for (const path of [`${RUN_PATH}/artifacts/x`, `${RUN_PATH}/pull-requests/x.diff`, `${RUN_PATH}/x.patch`])
    expect((await open(path)).status).toBe(404);
});
