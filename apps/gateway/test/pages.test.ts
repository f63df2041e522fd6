import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { NOW, startRestApi, PUBLIC_URL, upstreamError, type RestApi } from "./support/rest-api.ts";
import { RUN, TEAM, USER } from "./support/people.ts";
import { anArtifact, aRun, at, CONVERSATION, CREATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

const HOSTILE = `"><script>alert('x')</script>&`;
const OTHER_RUN = "0198c2d0-0000-7000-8000-000000000002";
const PR = "0198c2d0-0000-7000-8000-00000000b001";
const RUN_PATH = `/runs/${RUN}`;
const PR_PATH = `${RUN_PATH}/pull-requests/${PR}`;
const owned = { uid: RUN, ownerType: "team", ownerUid: TEAM };
const viewOf = (run: Parameters<typeof api.links.sessionLink>[0] = owned) =>
  new URL(api.links.sessionLink(run)).searchParams.get("view")!;
const open = (path: string, more: { view?: string; cookie?: string } = {}) =>
  api.call("GET", more.view === undefined ? path : `${path}?view=${encodeURIComponent(more.view)}`, {
    key: null,
    ...(more.cookie ? { headers: { cookie: more.cookie } } : {}),
  });
const signIn = (form: Record<string, string>) =>
  api.call("POST", "/sign-in/", {
    key: null,
    rawBody: new URLSearchParams(form).toString(),
    headers: { "content-type": "application/x-www-form-urlencoded" },
  });
const cookieOf = async (key = "member") =>
  (await signIn({ key, next: RUN_PATH })).headers.get("set-cookie")!.split(";")[0]!;

const pullRequest = {
  uid: PR,
  runUid: RUN,
  owner: "o",
  repo: "r",
  number: 3,
  url: `${PUBLIC_URL}${PR_PATH}`,
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
const steps = [
  {
    id: "s",
    description: HOSTILE,
    messages: [
      {
        role: HOSTILE,
        content: [
          { type: "text", text: HOSTILE },
          { type: "action", name: HOSTILE, input: { command: HOSTILE } },
          { type: "action_result", name: "n", output: { output: HOSTILE } },
          { type: "action", name: "n", input: { [HOSTILE]: HOSTILE } },
          { type: "event", name: HOSTILE },
        ],
      },
    ],
    steps: [],
  },
];
const artifacts = [
  anArtifact({ artifactType: "PULL_REQUEST", data: { url: `${PUBLIC_URL}${PR_PATH}`, branch: "fix", status: "open" } }),
  anArtifact({
    artifactType: "EXTERNAL_REFERENCE",
    data: { url: `https://evil.example/runs/${RUN}/x`, title: HOSTILE },
  }),
  anArtifact({ artifactType: "EXTERNAL_REFERENCE", data: { url: "javascript:alert(1)", title: "bad link" } }),
];
const visible = {
  getRun: {
    run: aRun({
      title: HOSTILE,
      statusMessage: { message: HOSTILE },
      agentConfig: { name: HOSTILE, model_id: HOSTILE },
      artifacts,
      requestUsage: { inference_cost_usd: 0.25 },
    }),
  },
  getTimeline: { events: [{ eventUuid: "e", runUid: RUN, eventType: "oz_run_created", occurredAt: at(CREATED) }] },
  getConversation: { conversationUid: CONVERSATION, steps },
  getPullRequest: pullRequest,
};
beforeEach(() => api.respondWith(visible));

describe("by its link, without signing in,", () => {
  test("a run shows what happened, cost and artifacts, as a viewer of its team", async () => {
    const { status, headers, body } = await open(RUN_PATH, { view: viewOf() });
    expect([status, headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    for (const text of ["QUEUED", "oz_run_created", "$0.250000", "fix", RUN]) expect(body).toContain(text);
    expect(api.calls.map((call) => call.method).toSorted()).toEqual(["getConversation", "getRun", "getTimeline"]);
    for (const { caller } of api.calls)
      expect(caller).toMatchObject({ teams: [{ teamUid: TEAM, verbs: ["run.view"] }], platformAdmin: false });
  });
  test("a personal run is shown as to its owner", async () => {
    await open(RUN_PATH, { view: viewOf({ uid: RUN, ownerType: "user", ownerUid: USER }) });
    expect(api.calls[0]!.caller).toMatchObject({ principal: { type: "user", uid: USER }, teams: [] });
  });
  test("a pull request and its diff open too", async () => {
    const page = await open(PR_PATH, { view: viewOf() });
    expect([page.status, page.body]).toEqual([200, expect.stringContaining("#3")]);
    const diff = await open(`${PR_PATH}.diff`, { view: viewOf() });
    expect([diff.status, diff.headers.get("content-type"), diff.body]).toEqual([
      200,
      "text/plain; charset=utf-8",
      pullRequest.diff,
    ]);
  });
  test("a plan is shown, a file is downloaded, another run's artifact is not there", async () => {
    const path = `${RUN_PATH}/artifacts/${anArtifact().uid}`;
    api.respondWith({
      ...visible,
      getArtifact: { artifact: anArtifact({ artifactType: "PLAN" }), data: { content: "# Plan" }, downloadUrl: "" },
    });
    expect(await open(path, { view: viewOf() })).toMatchObject({ status: 200, body: "# Plan" });
    api.respondWith({
      ...visible,
      getArtifact: { artifact: anArtifact(), data: {}, downloadUrl: `${PUBLIC_URL}/blobs/x` },
    });
    const file = await open(path, { view: viewOf() });
    expect([file.status, file.headers.get("location")]).toEqual([302, `${PUBLIC_URL}/blobs/x`]);
    api.respondWith({
      ...visible,
      getArtifact: { artifact: anArtifact({ runUid: OTHER_RUN }), data: {}, downloadUrl: `${PUBLIC_URL}/blobs/x` },
    });
    expect((await open(path, { view: viewOf() })).status).toBe(404);
    expect((await open(path)).status).toBe(401);
  });
  test("the token is handed on to our own pages only", async () => {
    const view = viewOf();
    const links = [...(await open(RUN_PATH, { view })).body.matchAll(/href="([^"]*)"/g)].map(
      ([, href]: string[]) => href,
    );
    expect(links).toEqual([
      `${PUBLIC_URL}${PR_PATH}?view=${encodeURIComponent(view)}`,
      `https://evil.example/runs/${RUN}/x`,
      "#",
    ]);
  });
  test.each<[string, () => string]>([
    ["of another run", () => viewOf({ ...owned, uid: OTHER_RUN })],
    ["of another run, renamed", () => viewOf({ ...owned, uid: OTHER_RUN }).replace(OTHER_RUN, RUN)],
    ["of another team", () => viewOf().replace(TEAM, USER)],
    ["cut", () => viewOf().slice(0, -1)],
    ["empty", () => ""],
  ])("a token %s opens nothing", async (_fault, token) => {
    for (const path of [RUN_PATH, PR_PATH, `${PR_PATH}.diff`])
      expect((await open(path, { view: token() })).status).toBe(401);
    expect(api.calls).toEqual([]);
  });
  test("an expired token opens nothing", async () => {
    const view = viewOf();
    api.clock.advance(26 * 3_600_000);
    expect((await open(RUN_PATH, { view })).status).toBe(401);
    api.clock.set(NOW);
  });
  test("a run's link does not open another run's pull request", async () => {
    api.respondWith({ ...visible, getPullRequest: { ...pullRequest, runUid: OTHER_RUN } });
    expect((await open(PR_PATH, { view: viewOf() })).status).toBe(404);
  });
});

test.each([RUN_PATH, PR_PATH])("%s escapes everything that an agent or a user wrote", async (path) => {
  const { body, headers } = await open(path, { view: viewOf() });
  expect(body).toContain("&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;");
  expect(body).not.toMatch(/<script|<b>new|javascript:/);
  expect(headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(headers.get("x-frame-options")).toBe("DENY");
});

describe("without a link", () => {
  test.each([RUN_PATH, PR_PATH, `/runs/${OTHER_RUN}`])("%s asks to sign in, whatever exists", async (path) => {
    const { status, body } = await open(path);
    expect([status, body.replaceAll(path, "PATH")]).toEqual([401, expect.stringContaining(`name="next" value="PATH"`)]);
    expect(api.calls).toEqual([]);
  });
  test("an API key signs in, by a cookie that scripts and other sites do not get, and leads back", async () => {
    const { status, headers } = await signIn({ key: "member", next: `${RUN_PATH}?a=b` });
    expect([status, headers.get("location")]).toEqual([303, `${RUN_PATH}?a=b`]);
    expect(headers.get("set-cookie")).toMatch(
      /^millwright_session=[\w.~-]+; Path=\/; Max-Age=\d+; HttpOnly; SameSite=Strict; Secure$/,
    );
    expect(headers.get("set-cookie")).not.toContain("member");
  });
  test("the cookie opens pages as its user", async () => {
    expect((await open(RUN_PATH, { cookie: `a=b; ${await cookieOf()}` })).status).toBe(200);
    expect(api.calls[0]!.caller.principal.uid).toBe(USER);
  });
  test("what the signed-in may not see looks like what does not exist", async () => {
    api.respondWith({
      getRun: upstreamError("not_found", "run_not_found"),
      getTimeline: upstreamError("not_found", "run_not_found"),
      getConversation: upstreamError("not_found", "run_not_found"),
    });
    expect(await open(RUN_PATH, { cookie: await cookieOf() })).toMatchObject({
      status: 404,
      body: expect.stringContaining("no such page"),
    });
  });
  test.each(["millwright_session=x", "millwright_session=", "other=member"])(
    "the cookie %s is rejected",
    async (cookie) => expect((await open(RUN_PATH, { cookie })).status).toBe(401),
  );
  test("a wrong key gets an error page without scripts", async () => {
    const { status, headers, body } = await signIn({ key: HOSTILE, next: RUN_PATH });
    expect([status, headers.get("set-cookie")]).toEqual([401, null]);
    expect(body).not.toContain("<script");
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("x-frame-options")).toBe("DENY");
  });
  test.each(["https://evil.example/", "//evil.example", "/runs/\\evil", "/api/v1/whoami", "", "javascript:alert(1)"])(
    "the form does not lead to %s",
    async (next) => expect((await signIn({ key: "member", next })).headers.get("location")).toBe("/"),
  );
  test("a form that is too long or malformed is rejected", async () => {
    expect((await signIn({ key: "k".repeat(10_000) })).status).toBe(400);
    expect((await api.call("GET", "/sign-in/", { key: null })).status).toBe(405);
  });
});

test("a malformed path is a 404", async () => {
  for (const path of ["/runs/x", `${RUN_PATH}/pull-requests/x`, `${RUN_PATH}/pull-requests/${PR}.patch`])
    expect((await open(path)).status).toBe(404);
});
