import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { freePort } from "@millwright/database";
import OzAPI, { APIConnectionError, APIError, BadRequestError, ConflictError, NotFoundError } from "oz-agent-sdk";
import { bareRepository, type Deployment, OWNER_KEY } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { TestWorker } from "./support/test-worker.ts";
import { ended, script, shellOutputs, succeeded } from "./support/runs.ts";
import { teamOf } from "./support/resources.ts";

/**
 * The published npm client, used with the platform's URL and a key of it. The tests check at run time what its types
 * declare. This release has no page classes (clients follow `page_info.next_cursor`), and sends no idempotency header
 * unless a subclass names one.
 */
type Resource = Record<string, (...given: unknown[]) => Promise<unknown>>;

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";
/** Runs for this worker stay queued. */
const NO_WORKER = { worker_host: "nobody" };
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const TEXT = expect.any(String);

let platform: Deployment;
let api: Client;
let client: OzAPI;
beforeAll(async () => {
  platform = await startPlatform();
  api = await connect(platform);
  client = aClient();
});
afterAll(() => platform?.remove());

type Sent = { readonly method: string; readonly headers: Headers; readonly status: number | undefined };
type Options = NonNullable<ConstructorParameters<typeof OzAPI>[0]>;
const settings = (more: Options = {}): Options => ({
  apiKey: OWNER_KEY,
  baseURL: `${platform.url}/api/v1`,
  logLevel: "off",
  fetch: reaching,
  ...more,
});
const aClient = (more: Options = {}): OzAPI => new OzAPI(settings(more));

/**
 * Retries requests below the client if processes of the platform are killed, so that the requests sent by the client
 * itself can be counted.
 */
const reaching: typeof fetch = async (input, init) => {
  if (!platform.hasChaos) return fetch(input, init);
  const { status, headers, bytes } = await api.send(new Request(input).url, init ?? {});
  return new Response(status === 204 ? null : new Uint8Array(bytes), { status, headers });
};

/** Returns a fetch that records requests. `meddle` can replace a response. */
function watching(meddle: (answer: Response, index: number) => Promise<Response> | Response = (answer) => answer) {
  const sent: Sent[] = [];
  const watched: typeof fetch = async (input, init) => {
    const answer = await reaching(input, init);
    const index =
      sent.push({ method: init?.method ?? "GET", headers: new Headers(init?.headers), status: answer.status }) - 1;
    return meddle(answer, index);
  };
  return { sent, fetch: watched };
}

/** Returns the error with which the promise is rejected. */
const failure = (promise: Promise<unknown>): Promise<any> =>
  promise.then(
    (value) => Promise.reject(new Error(`it was answered: ${JSON.stringify(value)}`)),
    (error: unknown) => error,
  );

/** The client's resources by their names in programs; their methods are observed, not changed. */
const resources: Record<string, object> = {
  agent: OzAPI.Agent.prototype,
  "agent.runs": OzAPI.Agent.Runs.prototype,
  "agent.schedules": OzAPI.Agent.Schedules.prototype,
};
const methods = Object.entries(resources).flatMap(([name, prototype]) =>
  Object.getOwnPropertyNames(prototype)
    .filter((method) => method !== "constructor")
    .map((method) => ({ name: `${name}.${method}`, spy: jest.spyOn(prototype as Resource, method) })),
);

describe("agent.run", () => {
  test("starts a run with the whole configuration, which can be read to its end", async () => {
    const repositories = platform.path("repositories");
    bareRepository(repositories, "acme", "shop", { "price.txt": "ten\n" });
    await api.post(`/team/${await teamOf(api)}/code-hosts`, { name: "local", kind: "local", root: repositories });
    const { uid: environment } = await api.post("/agent/environments", {
      config: { name: "shop", github_repos: [{ owner: "acme", repo: "shop" }] },
    });
    const prompt = script(
      "shell: wc -c < ../.attachments/*/image-1.png",
      "plan: {title: The plan, markdown: '# Steps'}",
      "write: {path: price.txt, content: nine}",
      "pull_request: Lower the price",
    );
    const config = {
      name: "whole",
      environment_id: environment,
      model_id: "scripted",
      base_prompt: "Be brief.",
      computer_use_enabled: false,
      worker_host: "warp",
    };
    const started = await client.agent.run({
      prompt,
      title: "Everything",
      team: true,
      config,
      images: [{ data: PNG, mime_type: "image/png" }],
    });
    expect(started).toEqual({ run_id: TEXT, task_id: started.run_id, state: "QUEUED" });

    await succeeded(api, started.run_id);
    const run = await client.agent.runs.retrieve(started.run_id);
    expect(run).toMatchObject({
      ...{
        run_id: started.run_id,
        task_id: started.run_id,
        title: "Everything",
        prompt,
        state: "SUCCEEDED",
        source: "API",
        created_at: TIME,
        updated_at: TIME,
        started_at: TIME,
      },
      ...{
        conversation_id: TEXT,
        session_id: TEXT,
        session_link: expect.stringContaining(platform.url),
        is_sandbox_running: expect.any(Boolean),
      },
      agent_config: {
        name: "whole",
        environment_id: environment,
        model_id: "scripted",
        base_prompt: "Be brief.",
        computer_use_enabled: false,
      },
      creator: { display_name: TEXT, type: "user", uid: TEXT },
      request_usage: expect.any(Object), // Credits are unknown here, so they are omitted.
      scope: { type: "Team", uid: await teamOf(api) },
    });
    expect(run.artifacts?.toSorted((a, b) => (a.artifact_type < b.artifact_type ? -1 : 1))).toMatchObject([
      { artifact_type: "PLAN", created_at: TIME, data: { document_uid: TEXT, title: "The plan" } },
      {
        artifact_type: "PULL_REQUEST",
        created_at: TIME,
        data: { branch: `agent/${started.run_id}`, url: expect.stringContaining("http") },
      },
    ]);
    expect(Number((await shellOutputs(api, run.run_id)).join(""))).toBe(Buffer.from(PNG, "base64").length);
  });

  test("continues a conversation and retains the configuration of tool servers", async () => {
    const first = await client.agent.run({ prompt: script("say: one") });
    const { conversation_id: conversation = "" } = await succeeded(api, first.run_id);
    const servers = {
      shared: { warp_id: randomUUID() },
      local: { command: "npx", args: ["-y", "server"], env: { MODE: "test" } },
      remote: { url: "https://mcp.example/sse", headers: { "x-a": "b" } },
    };
    const second = await client.agent.run({
      prompt: "Go on.",
      conversation_id: conversation,
      config: { ...NO_WORKER, mcp_servers: servers },
    });
    expect(await client.agent.runs.retrieve(second.run_id)).toMatchObject({
      conversation_id: conversation,
      state: "QUEUED",
      agent_config: { mcp_servers: servers, worker_host: "nobody" },
    });
    expect(await client.agent.runs.cancel(second.run_id)).toBe(second.run_id);
  });

  test("creates a personal run if no team is requested", async () => {
    const { run_id: id } = await client.agent.run({ prompt: "p", team: false, config: NO_WORKER });
    expect((await client.agent.runs.retrieve(id)).scope).toEqual({ type: "User", uid: TEXT });
    await client.agent.runs.cancel(id);
  });

  test("works in the team that the client's header names", async () => {
    const inTeam = (uid: string) => aClient({ defaultHeaders: { "X-Warp-Team-Uid": uid } });
    const own = await teamOf(api);
    const { run_id: id } = await inTeam(own).agent.run({ prompt: "p", config: NO_WORKER });
    expect((await inTeam(own).agent.runs.list({ limit: 1, state: ["QUEUED"] })).runs).toMatchObject([
      { run_id: id, scope: { type: "Team", uid: own } },
    ]);
    const other = inTeam(randomUUID());
    expect((await other.agent.runs.list()).runs).toEqual([]);
    expect(await failure(other.agent.run({ prompt: "p" }))).toBeInstanceOf(NotFoundError);
    await client.agent.runs.cancel(id);
  });
});

describe("agent.list", () => {
  test("lists the skills of the repositories of environments, of which runs can be started", async () => {
    const file = "---\nname: greet\ndescription: Greets.\n---\n\nSay hello.\n";
    bareRepository(platform.path("repositories"), "skilled", "shop", {
      "skills/greet/SKILL.md": file,
      "skills/broken/SKILL.md": "nothing",
    });
    await api.post(`/team/${await teamOf(api)}/code-hosts`, {
      name: "skilled",
      kind: "local",
      root: platform.path("repositories"),
      owners: ["skilled"],
    });
    const { uid } = await api.post("/agent/environments", {
      config: { name: "skilled", github_repos: [{ owner: "skilled", repo: "shop" }] },
    });
    const repo = { repo: "skilled/shop" };
    const [greet, ...others] = (await client.agent.list({ ...repo, sort_by: "last_run", refresh: true })).agents;
    const id = "skilled/shop:skills/greet/SKILL.md";
    const source = { owner: "skilled", name: "shop", skill_path: "skills/greet/SKILL.md" };
    expect([greet, others]).toEqual([
      {
        name: "greet",
        variants: [
          {
            id,
            description: "Greets.",
            base_prompt: expect.stringContaining("hello"),
            source,
            environments: [{ uid, name: "skilled" }],
            last_run_timestamp: null,
          },
        ],
      },
      [],
    ]);
    // This release of the client lacks the parameter.
    const { agents } = await api.get("/agent?repo=skilled/shop&include_malformed_skills=true");
    expect(
      agents.map(({ name, variants }: { name: string; variants: { error?: string }[] }) => [name, variants[0]!.error]),
    ).toEqual([
      ["broken", TEXT],
      ["greet", undefined],
    ]);
    const { run_id: run } = await client.agent.run({ skill: id, prompt: script("say: Hello.") });
    expect((await succeeded(api, run)).agent_config).toMatchObject({ skill_spec: id, name: "greet" });
    expect((await client.agent.list(repo)).agents[0]!.variants[0]!.last_run_timestamp).toEqual(TIME);
    expect(await failure(client.agent.list({ repo: "nonsense" }))).toBeInstanceOf(BadRequestError);
  });
});

describe("agent.runs.list", () => {
  const NAME = "page-walk";
  let uids: string[];
  beforeAll(async () => {
    uids = [];
    for (const n of [1, 2, 3, 4, 5])
      uids.push(
        (
          await client.agent.run({
            prompt: `Roof number ${n}`,
            title: `Leak ${n}`,
            config: { ...NO_WORKER, name: NAME },
          })
        ).run_id,
      );
  });
  afterAll(async () => {
    for (const id of uids) await client.agent.runs.cancel(id);
  });

  test("returns each run once, page by page", async () => {
    const pages: string[][] = [];
    for (let cursor: string | undefined; ;) {
      const { runs, page_info: info } = await client.agent.runs.list({
        name: NAME,
        limit: 2,
        cursor,
      });
      pages.push(runs.map(({ run_id: id }) => id));
      expect([typeof info.has_next_page, typeof info.next_cursor]).toEqual([
        "boolean",
        info.has_next_page ? "string" : "undefined",
      ]);
      if (!info.has_next_page) break;
      cursor = info.next_cursor;
    }
    expect([pages.map(({ length }) => length), pages.flat().toSorted()]).toEqual([[2, 2, 1], uids.toSorted()]);
  });

  test("accepts every filter of the client", async () => {
    const [first] = await Promise.all(uids.map((id) => client.agent.runs.retrieve(id)));
    const found = async (query: NonNullable<Parameters<typeof client.agent.runs.list>[0]>) =>
      (await client.agent.runs.list({ name: NAME, limit: 500, ...query })).runs.map(({ run_id: id }) => id).toSorted();
    const [all, none] = [uids.toSorted(), [] as string[]];
    const { created_at: at, creator, agent_config: config } = first!;
    const [before, after] = [-60_000, 60_000].map((ms) => new Date(Date.parse(at) + ms).toISOString()) as [
      string,
      string,
    ];
    expect(
      await found({
        state: ["QUEUED", "FAILED"],
        source: "API",
        creator: creator!.uid!,
        model_id: config!.model_id!,
        created_after: before,
        created_before: after,
        updated_after: before,
      }),
    ).toEqual(all);
    expect(await found({ q: "roof LEAK 3" })).toEqual([uids[2]]);
    expect(await found({ q: uids[3]! })).toEqual([uids[3]]);
    const refused = [
      { state: ["FAILED"] },
      { source: "CLI" },
      { creator: randomUUID() },
      { model_id: "x" },
      { created_after: after },
      { created_before: before },
      { updated_after: after },
    ] as const;
    for (const query of refused) expect(await found(query as object)).toEqual(none);
    for (const query of [
      { environment_id: "x" },
      { artifact_type: "PLAN" },
      { skill: "o/r:s" },
      { skill_spec: "o/r:s" },
      { schedule_id: "x" },
      { q: "roof gutter" },
    ] as const)
      expect(await found(query)).toEqual(none);
  });
});

describe("agent.runs.cancel", () => {
  test("of a PENDING run is retried by the client as the response instructs it, and succeeds", async () => {
    const worker = await TestWorker.register(api, "by-hand");
    const { run_id: id } = await client.agent.run({ prompt: "p", config: { worker_host: "by-hand" } });
    const lease = await worker.offer();
    const { sent, fetch: watched } = watching(async (answer) => {
      if (answer.status === 409) await worker.accept(lease);
      return answer;
    });
    expect(await aClient({ fetch: watched }).agent.runs.cancel(id)).toBe(id);
    expect(sent.map(({ status, headers }) => [status, headers.get("x-stainless-retry-count")])).toEqual([
      [409, "0"],
      [200, "1"],
    ]);
    expect((await ended(api, id)).state).toBe("CANCELLED");
  });
  test("of an ended run, or one of another team, is rejected without a retry", async () => {
    const { run_id: id } = await client.agent.run({ prompt: "p", config: NO_WORKER });
    await client.agent.runs.cancel(id);
    const { sent, fetch: watched } = watching();
    const watchedClient = aClient({ fetch: watched });
    expect(await failure(watchedClient.agent.runs.cancel(id))).toBeInstanceOf(BadRequestError);
    expect(await failure(watchedClient.agent.runs.cancel(randomUUID()))).toBeInstanceOf(NotFoundError);
    expect(sent).toHaveLength(2);
  });
});

describe("a failure", () => {
  const viewer = async () =>
    (await api.post(`/team/${await teamOf(api)}/keys`, { name: "viewer", scopes: ["run.view"] })).api_key as string;
  test.each<[string, number, string, () => Promise<unknown>]>([
    ["BadRequestError", 400, "prompt_required", () => client.agent.run({ prompt: " " })],
    ["AuthenticationError", 401, "key_invalid", () => aClient({ apiKey: "mw_wrong" }).agent.runs.list()],
    [
      "PermissionDeniedError",
      403,
      "not_authorized",
      async () => aClient({ apiKey: await viewer() }).agent.run({ prompt: "p" }),
    ],
    ["NotFoundError", 404, "run_not_found", () => client.agent.runs.retrieve(randomUUID())],
    [
      "UnprocessableEntityError",
      422,
      "unknown_attachment",
      async () => {
        const { run_id: id } = await client.agent.run({ prompt: script("say: hi") });
        return client.post(`/agent/runs/${id}/followups`, {
          body: { message: "m", attachments: [{ attachment_id: "x" }] },
        });
      },
    ],
  ])("is a %s that contains the problem", async (name, status, reason, call) => {
    const error = await failure(call());
    expect([error.constructor.name, error.status, error.error]).toEqual([
      name,
      status,
      expect.objectContaining({ status, reason, retryable: false, error_code: TEXT, trace_id: TEXT, title: TEXT }),
    ]);
    expect(error).toBeInstanceOf(APIError);
    expect([error.headers.get("content-type"), error.headers.get("x-request-id")]).toEqual([
      expect.stringContaining("application/problem+json"),
      TEXT,
    ]);
  });
  test("to connect is an APIConnectionError", async () => {
    const nowhere = aClient({ baseURL: `http://127.0.0.1:${await freePort()}/api/v1`, maxRetries: 0 });
    expect(await failure(nowhere.agent.runs.list())).toBeInstanceOf(APIConnectionError);
  });
});

describe("a client that names the idempotency header", () => {
  class Careful extends OzAPI {
    protected override idempotencyHeader = "Idempotency-Key";
  }
  test("starts one run although the first response is lost", async () => {
    const { sent, fetch: watched } = watching((answer, index) => {
      if (index === 0) throw new TypeError("fetch failed");
      return answer;
    });
    const { run_id: id } = await new Careful(settings({ fetch: watched })).agent.run({
      prompt: "p",
      config: { ...NO_WORKER, name: "careful" },
    });
    expect(sent.map(({ status, headers }) => [status, headers.get("idempotency-key")])).toEqual([
      [200, expect.stringMatching(/^stainless-node-retry-/)],
      [200, sent[0]!.headers.get("idempotency-key")],
    ]);
    expect((await client.agent.runs.list({ name: "careful" })).runs.map(({ run_id: listed }) => listed)).toEqual([id]);
    await client.agent.runs.cancel(id);
  });
  test("gets a conflict for another body under the same key, and does not retry", async () => {
    const { sent, fetch: watched } = watching();
    const careful = new Careful(settings({ fetch: watched }));
    const key = { idempotencyKey: randomUUID() };
    const { run_id: id } = await careful.agent.run({ prompt: "p", config: NO_WORKER }, key);
    expect((await careful.agent.run({ prompt: "p", config: NO_WORKER }, key)).run_id).toBe(id);
    expect(await failure(careful.agent.run({ prompt: "other", config: NO_WORKER }, key))).toBeInstanceOf(ConflictError);
    expect(sent.map(({ status }) => status)).toEqual([200, 200, 409]);
    await client.agent.runs.cancel(id);
  });
});

test("its verbs call undocumented endpoints, and its promises give raw responses", async () => {
  const { data, response } = await client.get<{ principal: { uid: string } }>("/whoami").withResponse();
  expect([data.principal.uid, response.headers.get("x-request-id")]).toEqual([TEXT, TEXT]);
  const team = await teamOf(api);
  await client.put(`/team/${team}/secrets/FROM_CLIENT`, { body: { value: "v" } });
  expect(await client.delete(`/team/${team}/secrets/FROM_CLIENT`)).toBeNull();
  expect(await client.patch<object>(`/team/${team}`, { body: {} })).toMatchObject({ uid: team });
});

test("agent.schedules: a schedule is created, read, listed by name, replaced, paused, resumed and deleted", async () => {
  const { schedules } = client.agent;
  const asked = {
    name: "of the client",
    cron_schedule: "0 9 * * MON-FRI",
    prompt: "Look.",
    agent_config: { name: "cfg" },
  };
  const made = await schedules.create(asked);
  expect(made).toMatchObject({
    ...asked,
    id: TEXT,
    enabled: true,
    created_at: TIME,
    updated_at: TIME,
    created_by: { type: "user", uid: TEXT },
    scope: { type: "Team", uid: await teamOf(api) },
    history: { last_ran: null, next_run: TIME },
  });
  expect(await schedules.retrieve(made.id)).toEqual(made);
  const first = await schedules.create({ ...asked, name: "a first", enabled: false });
  expect((await schedules.list()).schedules.map(({ name }) => name)).toEqual(["a first", "of the client"]);
  expect(
    await schedules.update(made.id, {
      name: "renamed",
      cron_schedule: "0 10 * * *",
      enabled: true,
      prompt: "Look again.",
    }),
  ).toMatchObject({ id: made.id, name: "renamed", prompt: "Look again.", agent_config: { name: "cfg" } });
  expect(await schedules.pause(made.id)).toMatchObject({ enabled: false, history: { next_run: null } });
  expect(await schedules.resume(made.id)).toMatchObject({
    enabled: true,
    history: { next_run: expect.stringContaining("T10:00:00.000Z") },
  });
  for (const { id } of [made, first]) expect(await schedules.delete(id)).toEqual({ success: true });
  expect(await failure(schedules.retrieve(made.id))).toBeInstanceOf(NotFoundError);
  expect(await failure(schedules.create({ ...asked, cron_schedule: "@daily" }))).toBeInstanceOf(BadRequestError);
});

test("every method of the client is called above", () => {
  expect(methods.length).toBeGreaterThan(0);
  expect(methods.filter(({ spy }) => spy.mock.calls.length === 0).map(({ name }) => name)).toEqual([]);
});
