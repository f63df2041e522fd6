import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import {
  documented,
  PUBLISHED as PUBLISHED_OF_AGENTS,
  SCHEDULE,
  valuesOf,
  type Operation,
} from "./support/published-api.ts";
import { PUBLISHED_OF_FACTORIES } from "./support/published-factory-api.ts";
import { PUBLISHED_OF_SCORING } from "./support/published-scoring-api.ts";
import { aTeam, teamOf } from "./support/resources.ts";

/**
 * The tables of published operations (support/published-api.ts, published-factory-api.ts, published-scoring-api.ts),
 * compared with the API document and with the responses of the platform.
 */
const PUBLISHED = [...PUBLISHED_OF_AGENTS, ...PUBLISHED_OF_FACTORIES, ...PUBLISHED_OF_SCORING];
const FACTORY = /^\/factory\/\{(factory_)?uid\}/;
let platform: Deployment;
let api: Client;
let factory: string;

beforeAll(async () => {
  platform = await startPlatform({ workers: 0 });
  api = await connect(platform);
  factory = (await api.post("/factory", { name: "Works" })).uid;
});
afterAll(() => platform?.remove());

const named = (operations: readonly Operation[]) =>
  operations.map((one): [string, Operation] => [`${one.method} ${one.path}`, one]);
const ask = ({ body }: Operation) => (body === undefined ? {} : { body });
/** Returns the path with random ids, which identify no resource. */
const pathOfNothing = ({ path, query = {} }: Operation): string =>
  path.replaceAll(/\{\w+\}/g, () => randomUUID()) +
  Object.entries(query)
    .filter(([, { required }]) => path.includes("{") && required)
    .map(([name]) => `?${name}=x`)
    .join("");

/** Reads that need no id except a factory's, and no parameter. */
const LISTS = PUBLISHED.filter(
  ({ method, path, query = {} }) =>
    method === "GET" &&
    !path.replace(FACTORY, "").includes("{") &&
    !Object.values(query).some(({ required }) => required),
);
const ofFactory = (path: string): string => path.replace(FACTORY, `/factory/${factory}`);

describe("the API document", () => {
  test.each(named(PUBLISHED))("documents %s as published", (_name, operation) => {
    const { ok, errors, query = {}, hasTeam = false } = operation;
    expect(documented(api.document, operation)).toEqual({
      ok,
      errors: errors.toSorted((a, b) => a - b),
      hasTeam,
      query,
    });
  });
});

describe("anonymous callers", () => {
  test.each(named(PUBLISHED))("get 401 from %s", async (_name, operation) => {
    expect(await api.call(operation.method, pathOfNothing(operation), { ...ask(operation), key: null })).toMatchObject({
      status: 401,
      body: { error_code: "authentication_required", retryable: false },
    });
  });
});

describe("an unknown id", () => {
  test.each(named(PUBLISHED.filter(({ path }) => path.includes("{"))))(
    "returns 404 from %s",
    async (_name, operation) => {
      expect(await api.call(operation.method, pathOfNothing(operation), ask(operation))).toMatchObject({
        status: 404,
        body: { error_code: "resource_not_found", retryable: false },
      });
    },
  );
});

describe("a parameter", () => {
  const params = LISTS.flatMap(({ path, query = {} }) =>
    Object.entries(query).map(([name, param]) => [path, name, valuesOf(param)] as const),
  );
  const TOGETHER = new Set(["start_date", "end_date"]); // Scorers require both or neither.
  const bounded = params.filter(([, name, { bad }]) => bad.length > 0 && !TOGETHER.has(name));
  test.each(bounded)(
    "of %s, %s, accepts the published values and rejects others",
    async (path, name, { good, bad }) => {
      const statuses = async (values: readonly string[]) =>
        Promise.all(
          values.map(async (value) => [value, (await api.call("GET", `${ofFactory(path)}?${name}=${value}`)).status]),
        );
      expect([await statuses(good), await statuses(bad)]).toEqual([
        good.map((value) => [value, 200]),
        bad.map((value) => [value, 400]),
      ]);
    },
  );

  test.each(LISTS.map(({ path }) => path))("of %s that is unknown is ignored", async (path) => {
    expect((await api.call("GET", `${ofFactory(path)}?unknown_parameter=1`)).status).toBe(200);
  });

  test.each(
    PUBLISHED.flatMap(({ path, query = {} }) =>
      Object.entries(query).flatMap(([name, { required }]) => (required ? [[path, name]] : [])),
    ),
  )("of %s, %s, is required", async (path, name) => {
    for (const query of ["", `?${name}=`, `?${name}=x&${name}=x`])
      expect([query, (await api.call("GET", ofFactory(path) + query)).status]).toEqual([query, 400]);
  });

  test.each(LISTS.flatMap(({ path, query }) => (query ? [[path, query] as const] : [])))(
    "of %s that may be repeated accepts several values, and others do not",
    async (path, query) => {
      for (const [name, param] of Object.entries(query).filter(([, { is }]) => is !== "map")) {
        const value = valuesOf(param).good[0] ?? (name === "factory_uid" ? randomUUID() : "x");
        expect([name, (await api.call("GET", `${ofFactory(path)}?${name}=${value}&${name}=${value}`)).status]).toEqual([
          name,
          param.many ? 200 : 400,
        ]);
      }
    },
  );
});

describe("the list of runs", () => {
  test("has the default of each parameter when it is left out", async () => {
    for (let n = 0; n < 22; n += 1) await api.post("/agent/runs", { prompt: `run ${n}` });
    const [plain, explicit] = [
      await api.get("/agent/runs"),
      await api.get("/agent/runs?sort_by=updated_at&sort_order=desc&limit=20"),
    ];
    expect([plain.runs.length, plain.page_info.has_next_page]).toEqual([20, true]);
    expect(plain.runs.map((run: any) => run.run_id)).toEqual(explicit.runs.map((run: any) => run.run_id));
    const times = plain.runs.map((run: any) => Date.parse(run.updated_at));
    expect(times).toEqual(times.toSorted((a: number, b: number) => b - a));
  });

  test("finds a run by its id, by the URLs of its page and record, and by words in any case", async () => {
    const word = `quagga${randomUUID().slice(0, 8)}`;
    const { run_id: runId } = await api.post("/agent/runs", {
      prompt: `Feed the ${word.toUpperCase()} well`,
      title: "At the zoo",
    });
    await api.post("/agent/runs", { prompt: `About run ${runId}` });
    const found = async (q: string): Promise<string[]> =>
      (await api.get(`/agent/runs?q=${encodeURIComponent(q)}`)).runs.map((run: any) => run.run_id);
    const { session_link: link } = await api.get(`/agent/runs/${runId}`);
    for (const q of [
      runId,
      runId.toUpperCase(),
      ` ${runId} `,
      link,
      `${platform.url}/runs/${runId}`,
      `${platform.url}/runs/${runId}/`,
      `${platform.url}/api/v1/agent/runs/${runId}?x=1#top`,
      `well ${word}`,
      "zoo at " + word,
    ])
      expect([q, await found(q)]).toEqual([q, [runId]]);
    expect(await found(`${platform.url}/runs/${randomUUID()}`)).toEqual([]);
  });

  test("cannot be filtered by metadata if the capability is off, and can if it is on", async () => {
    const team = await teamOf(api);
    await api.patch(`/team/${team}`, { capabilities: { metadata_filter: false } });
    expect(await api.call("GET", "/agent/runs?metadata[a]=b")).toMatchObject({
      status: 403,
      body: { error_code: "feature_not_available", reason: "metadata_filter_off", retryable: false },
    });
    await api.patch(`/team/${team}`, { capabilities: { metadata_filter: true } });
    expect((await api.call("GET", "/agent/runs?metadata[a]=b")).status).toBe(200);
  });
});

test.each<[string, object, object | undefined]>([
  ["/agent/runs", { prompt: "once" }, undefined],
  ["/agent/schedules", SCHEDULE, { name: "changed", cron_schedule: "0 1 * * *", enabled: true, prompt: "other" }],
  ["/agent/identities", { name: "once" }, { name: "changed" }],
])(
  "%s with an Idempotency-Key is executed once: a repetition returns the first response, although the resource has changed; another body is a 409",
  async (path, body, change) => {
    const headers = { "idempotency-key": randomUUID() };
    const create = (sent: object) => api.call("POST", path, { body: sent, headers });
    const first = await create(body);
    const uid = first.body.run_id ?? first.body.id ?? first.body.uid;
    expect(await (change ? api.put(`${path}/${uid}`, change) : api.post(`${path}/${uid}/cancel`))).toBeTruthy();
    expect(await create(body)).toMatchObject({ status: first.status, body: first.body });
    expect(await create({ ...body, name: "other", title: "other" })).toMatchObject({
      status: 409,
      body: { error_code: "conflict", reason: "idempotency_mismatch", retryable: false },
    });
  },
);

test("a repeated create returns its run although the environment and the agent that it names were deleted", async () => {
  const environment = await api.post("/agent/environments", { config: { name: `once ${randomUUID()}` } });
  const agent = await api.post("/agent/identities", { name: `once ${randomUUID()}` });
  const headers = { "idempotency-key": randomUUID() };
  const create = () =>
    api.call("POST", "/agent/runs", {
      body: { prompt: "once", agent_identity_uid: agent.uid, config: { environment_id: environment.uid } },
      headers,
    });
  const first = await create();
  expect(first.status).toBe(200);
  await api.delete(`/agent/environments/${environment.uid}`);
  expect(await create()).toMatchObject({ status: 200, body: first.body });
  await api.delete(`/agent/identities/${agent.uid}`);
  expect(await create()).toMatchObject({ status: 200, body: first.body });
});

test("a local run is registered once per Idempotency-Key, and a repetition returns the first response", async () => {
  const [headers, client] = [{ "idempotency-key": randomUUID() }, { client_id: randomUUID() }];
  const register = (command: string[]) =>
    api.call("POST", "/agent/runs/local", { body: { ...client, command }, headers });
  const first = await register(["true"]);
  expect(first).toMatchObject({ status: 200, body: { state: "INPROGRESS" } });
  expect(
    await api.post(`/agent/runs/${first.body.run_id}/report`, {
      ...client,
      events: [{ kind: "ended", seq: 1, exit_code: 0 }],
    }),
  ).toMatchObject({ state: "SUCCEEDED" });
  expect(await register(["true"])).toMatchObject({ status: 200, body: first.body });
  expect(await register(["false"])).toMatchObject({ status: 409, body: { reason: "idempotency_mismatch" } });
});

test("every error code is explained at the URL of the problem's type, without a key", async () => {
  const codes = [
    ...[
      "invalid_request",
      "integration_not_configured",
      "authentication_required",
      "external_authentication_required",
      "not_authorized",
      "insufficient_credits",
      "budget_exceeded",
      "feature_not_available",
    ],
    ...[
      "integration_disabled",
      "content_policy_violation",
      "resource_not_found",
      "conflict",
      "operation_not_supported",
      "unknown_attachment",
      "resource_unavailable",
      "environment_setup_failed",
      "internal_error",
    ],
    ...[
      "infrastructure_timeout",
      "agent_process_failed",
      "agent_stream_network_error",
      "agent_stream_failure",
      "rate_limited",
      "payload_too_large",
      "agent_reported_failure",
    ],
  ];
  const {
    body: { type },
  } = await api.call("GET", `/agent/runs/${randomUUID()}`);
  expect(type).toBe(`${platform.url}/errors/resource_not_found`);
  const answers = await Promise.all(codes.map((code) => api.fetch(type.replace("resource_not_found", code))));
  expect(answers.map(({ status }, n) => [codes[n], status])).toEqual(codes.map((code) => [code, 200]));
});

describe("the team header", () => {
  test("of a team that the caller is not in returns empty lists, and 404 for creates", async () => {
    const headers = { "x-service-team-uid": randomUUID() };
    for (const { method, path, body } of PUBLISHED.filter(({ hasTeam }) => hasTeam)) {
      const { status, body: answer } = await api.call(method, path, {
        headers,
        body,
      });
      expect([path, status, answer.reason ?? Object.values(answer).find(Array.isArray)]).toEqual(
        method === "POST" ? [path, 404, "team_not_found"] : [path, 200, []],
      );
    }
  });

  test("is ignored for single resources, for models, and with the key of an agent", async () => {
    const { run_id: run } = await api.post("/agent/runs", { prompt: "p" });
    const { conversation_id: conversation } = await api.get(`/agent/runs/${run}`);
    const { id: schedule } = await api.post("/agent/schedules", { ...SCHEDULE, name: "of a header" });
    const { uid: agent } = await api.post("/agent/identities", { name: "of a header" });
    const { api_key: key } = await api.post(`/team/${await teamOf(api)}/keys`, {
      name: "of a header",
      agent_uid: agent,
    });
    const headers = { "x-service-team-uid": randomUUID() };
    for (const path of [
      `/agent/runs/${run}`,
      `/agent/runs/${run}/timeline`,
      `/agent/conversations/${conversation}`,
      `/agent/schedules/${schedule}`,
      `/agent/identities/${agent}`,
      "/agent/models",
    ])
      expect([path, (await api.call("GET", path, { headers })).body]).toEqual([path, await api.get(path)]);
    expect(await api.get("/agent/identities", { headers, key })).toEqual(await api.get("/agent/identities"));
    expect((await api.call("POST", "/agent/runs", { headers, key, body: { prompt: "p" } })).status).toBe(200);
  });
});

describe("a run of an agent's key", () => {
  let team: string;
  let agent: string;
  let byAgent: Client;
  beforeAll(async () => {
    team = await teamOf(api);
    agent = (await api.post("/agent/identities", { name: "clerk", harness: { type: "codex", model_id: "m" } })).uid;
    byAgent = api.as((await api.post(`/team/${team}/keys`, { name: "clerk", agent_uid: agent })).api_key);
  });
  const start = (client: Client, body: object) =>
    client.call("POST", "/agent/runs", { body: { prompt: "p", ...body } });

  test("is executed by that agent with the agent's configuration", async () => {
    const { run_id: id } = await byAgent.post("/agent/runs", { prompt: "p" });
    expect(await api.get(`/agent/runs/${id}`)).toMatchObject({
      creator: { type: "service_account", uid: agent },
      executor: { type: "service_account", uid: agent },
      agent_config: { harness: { type: "codex", model_id: "m" } },
    });
  });

  test("can also be started by its schedule", async () => {
    const schedule = await byAgent.post("/agent/schedules", {
      name: "by the clerk",
      cron_schedule: "0 0 1 1 *",
      prompt: "p",
    });
    expect(schedule).toMatchObject({ agent_uid: agent, scope: { type: "Team", uid: team } });
    const { id, name, cron_schedule, enabled, prompt } = schedule;
    expect((await byAgent.put(`/agent/schedules/${id}`, { name, cron_schedule, enabled, prompt })).agent_uid).toBe(
      agent,
    );
    expect(
      (await api.put(`/agent/schedules/${id}`, { name, cron_schedule, enabled, prompt })).agent_uid,
    ).toBeUndefined();
  });

  test("has the member as creator on whose behalf the agent acts, by e-mail address in any case or by uid", async () => {
    const {
      principal: { uid, email },
    } = await api.get("/whoami");
    expect(await start(byAgent, { on_behalf_of: email })).toMatchObject({
      status: 403,
      body: { error_code: "not_authorized", reason: "on_behalf_of_refused", retryable: false },
    });
    await api.put(`/agent/identities/${agent}`, { on_behalf_of_enabled: true });
    for (const member of [email.toUpperCase(), uid]) {
      const { run_id: id } = await byAgent.post("/agent/runs", { prompt: "p", on_behalf_of: member });
      expect(await api.get(`/agent/runs/${id}`)).toMatchObject({
        creator: { type: "user", uid },
        executor: { type: "service_account", uid: agent },
      });
      expect((await api.get(`/agent/runs?creator=${uid}&executor=${agent}&q=${id}`)).runs).toHaveLength(1);
    }
  });

  test("is rejected on behalf of a non-member or an agent, and with the key of a user", async () => {
    const { principal } = await (await aTeam(api, "strangers")).get("/whoami");
    for (const member of [principal.uid, principal.email, agent, randomUUID(), "nobody@example.com"])
      expect([member, await start(byAgent, { on_behalf_of: member })]).toMatchObject([
        member,
        { status: 403, body: { reason: "on_behalf_of_refused" } },
      ]);
    expect(await start(api, { on_behalf_of: (await api.get("/whoami")).principal.uid })).toMatchObject({
      status: 403,
      body: { reason: "on_behalf_of_refused" },
    });
  });

  test("still names its executor after the agent was deleted", async () => {
    const clerk = { type: "service_account", uid: agent, display_name: "clerk" };
    const { run_id: id } = await byAgent.post("/agent/runs", { prompt: "p" });
    await api.delete(`/agent/identities/${agent}`);
    expect(await api.get(`/agent/runs/${id}`)).toMatchObject({ creator: clerk, executor: clerk });
    expect((await api.call("GET", `/agent/identities/${agent}`)).status).toBe(404);
    expect(await start(api, { agent_identity_uid: agent })).toMatchObject({ status: 404 });
  });
});
