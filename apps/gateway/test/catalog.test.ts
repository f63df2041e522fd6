import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { readConfig } from "@millwright/config";
import { egressRangesSetting } from "../src/egress-ranges.ts";
import {
  testRejectedBeforeUpstreams,
  startRestApi,
  upstreamError,
  testUpstreamErrors,
  type RestApi,
} from "./support/rest-api.ts";
import { AGENT, OTHER_TEAM, RUN, TEAM, USER } from "./support/people.ts";
import { at, CREATED, UPDATED } from "./support/records.ts";

let api: RestApi;
beforeAll(async () => void (api = await startRestApi()));
afterAll(() => api.close());

test("models show what they cost, or why they are off", async () => {
  const scripted = {
    id: "scripted",
    displayName: "Scripted (no AI)",
    provider: "UNKNOWN",
    visionSupported: false,
    disabled: false,
    cost: { inputPerMillionTokens: 0, outputPerMillionTokens: 0 },
  };
  const off = {
    id: "m",
    displayName: "M",
    provider: "ANTHROPIC",
    visionSupported: true,
    disabled: true,
    disableReason: "ADMIN_DISABLED",
    disabledMessage: "Set a key.",
    description: "d",
    reasoningLevel: "high",
  };
  api.respondWith({ listModels: { defaultModelId: "scripted", models: [scripted, off] } });
  expect((await api.call("GET", "/api/v1/agent/models")).body).toEqual({
    default_model_id: "scripted",
    models: [
      {
        id: "scripted",
        display_name: "Scripted (no AI)",
        provider: "UNKNOWN",
        vision_supported: false,
        disabled: false,
        cost: { currency: "USD", input_per_million_tokens: 0, output_per_million_tokens: 0 },
      },
      {
        id: "m",
        display_name: "M",
        provider: "ANTHROPIC",
        vision_supported: true,
        disabled: true,
        disable_reason: "ADMIN_DISABLED",
        disabled_message: "Set a key.",
        description: "d",
        reasoning_level: "high",
        cost: null,
      },
    ],
  });
});

test("workers are those of the active team", async () => {
  const worker = {
    workerHost: "w1",
    connectionCount: 2,
    connectedAt: at(CREATED),
    lastSeenAt: at(UPDATED),
    sandbox: "bwrap",
    sandboxFeatures: ["memory-limit=cgroup-v2"],
  };
  api.respondWith({ listWorkers: { workers: [worker] } });
  const { body } = await api.call("GET", "/api/v1/agent/connected-self-hosted-workers", {
    headers: { "x-service-team-uid": OTHER_TEAM },
  });
  expect(body).toEqual({
    workers: [
      {
        worker_host: "w1",
        connection_count: 2,
        connected_at: CREATED,
        last_seen_at: UPDATED,
        sandbox: "bwrap",
        sandbox_features: ["memory-limit=cgroup-v2"],
      },
    ],
  });
  expect(api.calls[0]!.request).toMatchObject({ teamUid: OTHER_TEAM });
});

describe("skills", () => {
  const variant = {
    id: "acme/shop:skills/review/SKILL.md",
    description: "Reviews.",
    basePrompt: "Look.",
    owner: "acme",
    repo: "shop",
    path: "skills/review/SKILL.md",
    workerHost: "",
    environments: [{ uid: "e", name: "web" }],
    lastRunTimestamp: at(UPDATED),
    error: "",
  };
  const shown = {
    id: variant.id,
    description: "Reviews.",
    base_prompt: "Look.",
    source: { owner: "acme", name: "shop", skill_path: variant.path },
    environments: [{ uid: "e", name: "web" }],
    last_run_timestamp: UPDATED,
  };
  test("are shown by name with their variants", async () => {
    const reported = {
      ...variant,
      workerHost: "w1",
      environments: [],
      lastRunTimestamp: undefined,
      error: "description is required.",
    };
    api.respondWith({ listSkills: { skills: [{ name: "review", variants: [variant, reported] }] } });
    const { body } = await api.call("GET", "/api/v1/agent");
    expect(body).toEqual({
      agents: [
        {
          name: "review",
          variants: [
            shown,
            {
              ...shown,
              source: { ...shown.source, worker_host: "w1" },
              environments: [],
              last_run_timestamp: null,
              error: "description is required.",
            },
          ],
        },
      ],
    });
  });
  test.each<[string, object]>([
    ["", { teamUid: "", repo: "", refresh: false, sortBy: "name", includeMalformed: false }],
    [
      "?repo=acme/shop&refresh=true&sort_by=last_run&include_malformed_skills=true",
      { repo: "acme/shop", refresh: true, sortBy: "last_run", includeMalformed: true },
    ],
    ["?refresh=false&include_malformed_skills=false&unknown=1", { refresh: false, includeMalformed: false }],
  ])("are requested with %j", async (query, asked) => {
    api.respondWith({ listSkills: { skills: [] } });
    expect((await api.call("GET", `/api/v1/agent${query}`)).body).toEqual({ agents: [] });
    expect(api.calls[0]!.request).toMatchObject(asked);
  });
  test("are those of the active team", async () => {
    api.respondWith({ listSkills: { skills: [] } });
    await api.call("GET", "/api/v1/agent", { headers: { "x-service-team-uid": OTHER_TEAM } });
    expect(api.calls[0]!.request).toMatchObject({ teamUid: OTHER_TEAM });
  });
  test("need a key", async () => {
    api.respondWith({});
    expect((await api.call("GET", "/api/v1/agent", { key: null })).status).toBe(401);
  });
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      "repo=acme",
      "repo=acme/shop/x",
      "repo=",
      "repo=/shop",
      "refresh=1",
      "refresh=",
      "include_malformed_skills=yes",
      "sort_by=age",
      "sort_by=name&sort_by=name",
    ].map((query) => ["GET", `/api/v1/agent?${query}`] as const),
  );
});

describe("egress ranges", () => {
  const PATH = "/api/v1/networking/egress-ranges";
  const cidrs = ["203.0.113.0/24", "2001:db8::/32"];
  test.each([
    ["no team", undefined],
    ["a team of the caller", TEAM],
  ])("are returned for %s", async (_name, team) => {
    api.respondWith({});
    expect(
      await api.call("GET", PATH, team === undefined ? {} : { headers: { "x-service-team-uid": team } }),
    ).toMatchObject({ status: 200, body: { cidrs } });
  });
  test("are empty for teams that the caller is not in", async () => {
    api.respondWith({});
    for (const team of [OTHER_TEAM, "0198c2d0-0000-7000-8000-00000000ffff", "nonsense"])
      expect((await api.call("GET", PATH, { headers: { "x-service-team-uid": team } })).body).toEqual({ cidrs: [] });
  });
  test("require an API key", async () => {
    api.respondWith({});
    expect((await api.call("GET", PATH, { key: null })).status).toBe(401);
  });
  test("are parsed to one canonical form, or rejected with their value", () => {
    const read = (text?: string) =>
      readConfig({ MILLWRIGHT_EGRESS_RANGES: text }, { ranges: egressRangesSetting }).ranges;
    expect([read(" 203.0.113.7/24, 2001:DB8::1/32 ,203.0.113.0/24"), read()]).toEqual([cidrs, []]);
    for (const text of ["host", "10.0.0.0/40"]) expect(() => read(text)).toThrow(/MILLWRIGHT_EGRESS_RANGES must be/);
  });
});

describe("environments", () => {
  const UID = "0123456789abcdefABCDEF";
  const PATH = "/api/v1/agent/environments";
  const config = {
    name: "node",
    docker_image: "node:24",
    github_repos: [{ owner: "o", repo: "r" }],
    setup_commands: ["npm ci"],
    secrets: [{ name: "S" }],
    failure_session_retention_minutes: 5,
  };
  const environment = {
    uid: UID,
    ownerType: "team",
    ownerUid: TEAM,
    config,
    lastUpdated: at(UPDATED),
    setupFailed: false,
    creatorUid: USER,
    lastEditorUid: AGENT,
    access: "owned",
    linkSharing: false,
  };
  const shown = {
    uid: UID,
    config,
    last_updated: UPDATED,
    setup_failed: false,
    last_task_run_timestamp: null,
    link_sharing: false,
    access: "owned",
    scope: { type: "Team", uid: TEAM },
    creator: { type: "user", uid: USER, display_name: "Ada", email: "ada@example.com" },
    last_editor: { type: "service_account", uid: AGENT, display_name: "foreman" },
  };
  test.each([
    ["", "last_updated"],
    ["?sort_by=name", "name"],
  ])("%s are listed by %s", async (query, sortBy) => {
    api.respondWith({
      listEnvironments: {
        environments: [
          environment,
          { ...environment, ownerType: "user", ownerUid: USER, lastTaskRunTimestamp: at(CREATED) },
        ],
      },
    });
    const { body } = await api.call("GET", `${PATH}${query}`);
    expect(body.environments).toEqual([
      shown,
      { ...shown, scope: { type: "User", uid: USER }, last_task_run_timestamp: CREATED },
    ]);
    expect(api.calls[0]!.request).toMatchObject({ teamUid: "", sortBy });
  });
  test.each<[string, object, [string, string]]>([
    ["member", {}, ["team", TEAM]],
    ["member", { team: false }, ["user", USER]],
    ["agent", {}, ["team", TEAM]],
  ])("of %s %j are created for their owner", async (key, body, [ownerType, ownerUid]) => {
    api.respondWith({ createEnvironment: { environment } });
    expect(await api.call("POST", PATH, { key, body: { config, ...body } })).toMatchObject({
      status: 201,
      body: shown,
    });
    expect(api.calls[0]!.request.environment).toMatchObject({ uid: "", ownerType, ownerUid, config });
  });
  test("include their newest run, and no users of other owners", async () => {
    const lastTaskCreated = {
      id: RUN,
      title: "Fix",
      state: "INPROGRESS",
      createdAt: at(CREATED),
      updatedAt: at(UPDATED),
      startedAt: at(UPDATED),
    };
    const granted = {
      ...environment,
      ownerUid: OTHER_TEAM,
      access: "granted",
      linkSharing: true,
      lastTaskCreated: { ...lastTaskCreated, startedAt: undefined },
    };
    api.respondWith({ listEnvironments: { environments: [{ ...environment, lastTaskCreated }, granted] } });
    const task = {
      id: RUN,
      title: "Fix",
      state: "INPROGRESS",
      created_at: CREATED,
      updated_at: UPDATED,
      started_at: UPDATED,
    };
    const { creator: _1, last_editor: _2, ...anonymous } = shown;
    expect((await api.call("GET", PATH)).body.environments).toEqual([
      { ...shown, last_task_created: task },
      {
        ...anonymous,
        scope: { type: "Team", uid: OTHER_TEAM },
        access: "granted",
        link_sharing: true,
        last_task_created: { ...task, started_at: null },
      },
    ]);
  });
  test.each([[true], [false], [undefined]])("link_sharing can be set to %s", async (linkSharing) => {
    api.respondWith({ createEnvironment: { environment }, replaceEnvironment: { environment } });
    const body = { config, ...(linkSharing === undefined ? {} : { link_sharing: linkSharing }) };
    await api.call("POST", PATH, { body });
    await api.call("PUT", `${PATH}/${UID}`, { body });
    expect(api.calls.map(({ request }) => request.environment.linkSharing)).toEqual([linkSharing, linkSharing]);
  });
  test("are read by their uid", async () => {
    api.respondWith({ getEnvironment: { environment: { ...environment, access: "link" } } });
    expect((await api.call("GET", `${PATH}/${UID}`)).body).toMatchObject({ uid: UID, access: "link" });
    expect(api.calls[0]!.request).toMatchObject({ uid: UID });
  });
  describe("and their grants", () => {
    const GRANT = "0198c2d0-0000-7000-8000-00000000f001";
    const grant = { uid: GRANT, granteeType: "team", granteeUid: TEAM, createdAt: at(CREATED) };
    const teamGrant = { uid: GRANT, team_uid: TEAM, created_at: CREATED };
    test("are created for teams and users, whose uids may be in upper case, listed and deleted", async () => {
      api.respondWith({
        createEnvironmentGrant: { grant },
        listEnvironmentGrants: { grants: [grant, { ...grant, granteeType: "user", granteeUid: USER }] },
        deleteEnvironmentGrant: {},
      });
      expect(await api.call("POST", `${PATH}/${UID}/grants`, { body: { team_uid: TEAM.toUpperCase() } })).toMatchObject(
        {
          status: 201,
          body: teamGrant,
        },
      );
      const user = await api.call("POST", `${PATH}/${UID}/grants`, { body: { user_uid: USER.toUpperCase() } });
      expect(user.status).toBe(201);
      expect((await api.call("GET", `${PATH}/${UID}/grants`)).body).toEqual({
        grants: [teamGrant, { uid: GRANT, user_uid: USER, created_at: CREATED }],
      });
      expect((await api.call("DELETE", `${PATH}/${UID}/grants/${GRANT}`)).status).toBe(204);
      expect(api.calls.map(({ request }) => request)).toMatchObject([
        { environmentUid: UID, granteeType: "team", granteeUid: TEAM },
        { environmentUid: UID, granteeType: "user", granteeUid: USER },
        { environmentUid: UID },
        { environmentUid: UID, uid: GRANT },
      ]);
    });
    testUpstreamErrors(
      () => api,
      () => api.call("POST", `${PATH}/${UID}/grants`, { body: { team_uid: TEAM } }),
      [
        "createEnvironmentGrant",
        upstreamError("not_found", "environment_not_found"),
        upstreamError("not_found", "team_not_found"),
        upstreamError("permission_denied", "not_authorized"),
      ],
    );
    testUpstreamErrors(
      () => api,
      () => api.call("GET", `${PATH}/${UID}/grants`),
      [
        "listEnvironmentGrants",
        upstreamError("not_found", "environment_not_found"),
        upstreamError("permission_denied", "not_authorized"),
      ],
    );
    testUpstreamErrors(
      () => api,
      () => api.call("DELETE", `${PATH}/${UID}/grants/${GRANT}`),
      [
        "deleteEnvironmentGrant",
        upstreamError("not_found", "environment_grant_not_found"),
        upstreamError("permission_denied", "not_authorized"),
      ],
    );
    testRejectedBeforeUpstreams(() => api, 404, [
      ["POST", `${PATH}/${UID}/grants`, { user_uid: AGENT }],
      ["POST", `${PATH}/x/grants`, { team_uid: TEAM }],
      ["GET", `${PATH}/x/grants`],
      ["DELETE", `${PATH}/${UID}/grants/x`],
    ]);
    testRejectedBeforeUpstreams(
      () => api,
      400,
      [{}, { team_uid: 1 }, { user_uid: null }, []].map((body) => ["POST", `${PATH}/${UID}/grants`, body] as const),
    );
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", `${PATH}/${UID}`),
    ["getEnvironment", upstreamError("not_found", "environment_not_found")],
  );
  test("of an agent are owned by its team", async () => {
    api.respondWith({});
    expect(await api.call("POST", PATH, { key: "agent", body: { config, team: false } })).toMatchObject({
      status: 400,
      body: { reason: "personal_environment_of_agent" },
    });
  });
  test("are replaced and deleted by their uid", async () => {
    api.respondWith({ replaceEnvironment: { environment }, deleteEnvironment: {} });
    expect(await api.call("PUT", `${PATH}/${UID}`, { body: { config } })).toMatchObject({ status: 200, body: shown });
    expect(await api.call("DELETE", `${PATH}/${UID}`)).toMatchObject({ status: 204, body: "" });
    expect(api.calls.map(({ method, request }) => [method, request.environment?.uid ?? request.uid])).toEqual([
      ["replaceEnvironment", UID],
      ["deleteEnvironment", UID],
    ]);
  });
  testUpstreamErrors(
    () => api,
    () => api.call("POST", PATH, { body: { config } }),
    [
      "createEnvironment",
      upstreamError("invalid_argument", "invalid_environment"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("PUT", `${PATH}/${UID}`, { body: { config } }),
    [
      "replaceEnvironment",
      upstreamError("not_found", "environment_not_found"),
      upstreamError("invalid_argument", "invalid_environment"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("DELETE", `${PATH}/${UID}`),
    [
      "deleteEnvironment",
      upstreamError("not_found", "environment_not_found"),
      upstreamError("permission_denied", "not_authorized"),
    ],
  );
  testRejectedBeforeUpstreams(() => api, 404, [
    ["GET", `${PATH}/x`],
    ["PUT", `${PATH}/x`, { config }],
    ["DELETE", `${PATH}/${UID}0`],
  ]);
  testRejectedBeforeUpstreams(() => api, 400, [
    ["GET", `${PATH}?sort_by=uid`],
    ...[
      {},
      { config: 1 },
      { config: { name: 1 } },
      { config: { github_repos: [{ owner: "o" }] } },
      { config: { setup_commands: "x" } },
      { config: { failure_session_retention_minutes: 0 } },
      { config: { failure_session_retention_minutes: 61 } },
      { config, team: "no" },
      { config, link_sharing: "yes" },
    ].map((body) => ["POST", PATH, body] as const),
    ["PUT", `${PATH}/${UID}`, { config: [] }],
  ]);
});

describe("code hosts", () => {
  const UID = "0198c2d0-0000-7000-8000-00000000d001";
  const PATH = `/api/v1/team/${TEAM}/code-hosts`;
  const codeHost = {
    uid: UID,
    teamUid: TEAM,
    name: "ours",
    kind: "local",
    baseUrl: "",
    root: "/srv/git",
    secretName: "",
    owners: ["o"],
    createdAt: at(CREATED),
  };
  const shown = {
    uid: UID,
    name: "ours",
    kind: "local",
    base_url: "",
    root: "/srv/git",
    secret_name: "",
    owners: ["o"],
    created_at: CREATED,
  };
  test("are listed and connected", async () => {
    api.respondWith({ listCodeHosts: { codeHosts: [codeHost] }, createCodeHost: { codeHost } });
    expect((await api.call("GET", PATH)).body).toEqual({ code_hosts: [shown] });
    expect(
      await api.call("POST", PATH, { body: { name: "ours", kind: "local", root: "/srv/git", owners: ["o"] } }),
    ).toMatchObject({ status: 201, body: shown });
    expect(
      await api.call("POST", PATH, {
        body: { name: "hub", kind: "github", base_url: "https://api.example/v3", secret_name: "TOKEN" },
      }),
    ).toMatchObject({ status: 201 });
    expect(api.calls.map(({ request }) => request.codeHost ?? request.teamUid)).toMatchObject([
      TEAM,
      { teamUid: TEAM, name: "ours", kind: "local", root: "/srv/git", owners: ["o"] },
      { name: "hub", kind: "github", baseUrl: "https://api.example/v3", secretName: "TOKEN", owners: [] },
    ]);
  });
  test("are removed from their own team only", async () => {
    const others = "0198c2d0-0000-7000-8000-00000000d002";
    api.respondWith({ listCodeHosts: { codeHosts: [codeHost] }, deleteCodeHost: {} });
    expect(await api.call("DELETE", `${PATH}/${others}`)).toMatchObject({
      status: 404,
      body: { reason: "code_host_not_found" },
    });
    expect(api.calls.map((call) => call.method)).toEqual(["listCodeHosts"]);
    expect((await api.call("DELETE", `${PATH}/${UID}`)).status).toBe(204);
    expect(api.calls.at(-1)).toMatchObject({ method: "deleteCodeHost", request: { uid: UID } });
  });
  testUpstreamErrors(
    () => api,
    () => api.call("GET", PATH),
    ["listCodeHosts", upstreamError("permission_denied", "not_authorized")],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("POST", PATH, { body: { name: "n", kind: "local" } }),
    [
      "createCodeHost",
      upstreamError("not_found", "team_not_found"),
      upstreamError("permission_denied", "not_authorized"),
      upstreamError("invalid_argument", "code_host_root_not_allowed"),
      upstreamError("conflict", "name_taken"),
    ],
  );
  testUpstreamErrors(
    () => api,
    () => api.call("DELETE", `${PATH}/${UID}`),
    [
      "deleteCodeHost",
      upstreamError("not_found", "code_host_not_found"),
      upstreamError("permission_denied", "not_authorized"),
    ],
    { listCodeHosts: { codeHosts: [codeHost] } },
  );
  testRejectedBeforeUpstreams(() => api, 404, [
    ["GET", `/api/v1/team/${OTHER_TEAM}/code-hosts`],
    ["GET", "/api/v1/team/x/code-hosts"],
    ["POST", "/api/v1/team/x/code-hosts", { name: "n", kind: "local" }],
    ["DELETE", `${PATH}/x`],
  ]);
  testRejectedBeforeUpstreams(
    () => api,
    400,
    [
      {},
      { name: "n" },
      { name: "", kind: "local" },
      { name: "n".repeat(101), kind: "local" },
      { name: "n", kind: "svn" },
      { name: "n", kind: "github", base_url: "not a url" },
      { name: "n", kind: "github", base_url: "file:///etc" },
      { name: "n", kind: "local", owners: [""] },
    ].map((body) => ["POST", PATH, body] as const),
  );
});
