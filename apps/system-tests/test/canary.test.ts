/* oxlint-disable jest/no-standalone-expect -- needs() declares tests */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect } from "@jest/globals";
import {
  eventually,
  ModelServer,
  needs,
  TraceCollector,
  type ModelAnswer,
  type ModelRequest,
} from "@millwright/testing";
import { type Deployment, OWNER_KEY } from "@millwright/test-platform";
import { findEverywhere, formsOf } from "./support/canaries.ts";
import { connect, type Client } from "./support/client.ts";
import { metricsUrls, onDeployments, startPlatform } from "./support/deployment.ts";
import { TestWorker } from "./support/test-worker.ts";
import { ended, eventsOf, startRun, succeeded } from "./support/runs.ts";
import { aCodeHost, aFactory, aTeam, teamOf } from "./support/resources.ts";

const PROVIDER_KEY = "sk-canary-of-the-platform/1+1==";
const TEAM_PROVIDER_KEY = "sk-canary-of-a-team";
const SECRET = "canary-of-a-managed-secret";
const HOST_TOKEN = "ghp_canary-of-a-code-host";
const HOST_WEBHOOK = "canary-of-a-code-hosts-webhook";
/** A text that the platform must output, to prove that the search works. */
const MODEL_TEXT = "I read the files of the workspace.";

const FILES = [
  {
    path: "factory.yaml",
    content:
      "schemaVersion: v1alpha1\nname: Works\nrepositories: []\nsecrets: [OTHER]\nagentDefaults:\n  model: auto\n",
  },
  { path: "agents/foreman/agent.md", content: "---\ndescription: Works.\nagentType: FOREMAN\n---\n\nLook around.\n" },
];
/**
 * Prints every environment and command line that a sandboxed process can read, reversed, so that masking by value has
 * no effect.
 */
const PRY =
  'env; echo "$OTHER"; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr "\\0" "\\n" | grep -v OTHER | rev';

/**
 * A model that tries to read secrets. If a run asks for it, the model's service returns an error message with the API
 * key of the request.
 */
function pry({ key, body }: ModelRequest): ModelAnswer {
  const messages = body["messages"] as { role: string }[];
  if (JSON.stringify(messages).includes("Be refused"))
    return { status: 400, message: `the key ${key} may not do this` };
  if (messages.some(({ role }) => role === "assistant"))
    return { text: "That is all.", usage: { input: 10, output: 1 } };
  return { text: MODEL_TEXT, calls: [{ name: "shell", input: { command: PRY } }], usage: { input: 100, output: 10 } };
}

/** A code host that rejects every request and repeats its credentials in plain text. */
async function talkativeHost(): Promise<{ server: Server; url: string; tokens: Set<string> }> {
  const tokens = new Set<string>();
  const server = createServer((request, response) => {
    const header = request.headers.authorization ?? "";
    const decoded = Buffer.from(header.split(" ").at(-1) ?? "", "base64").toString();
    if ((header + decoded).includes(HOST_TOKEN)) tokens.add(HOST_TOKEN);
    response.writeHead(403, { "content-type": "text/plain" }).end(`You sent ${header}, which is ${decoded}\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tokens };
}

onDeployments(["standalone", "processes"], (deployment) => {
  let models: ModelServer;
  let collector: TraceCollector;
  let host: Awaited<ReturnType<typeof talkativeHost>>;
  let platform: Deployment;
  let api: Client;
  /** Keys and tokens issued by the platform, which it recognizes in any text. */
  const own: string[] = [OWNER_KEY];
  /** All responses, except those that return a new key. */
  const answers: string[] = [];

  beforeAll(async () => {
    models = await ModelServer.start(pry);
    collector = await TraceCollector.start();
    host = await talkativeHost();
    platform = await startPlatform(
      { env: { ...collector.environment, ANTHROPIC_API_KEY: PROVIDER_KEY, ANTHROPIC_BASE_URL: models.url } },
      deployment,
    );
    api = await connect(platform);
  });
  afterAll(async () => {
    await platform?.remove();
    await Promise.all([collector?.stop(), models?.stop()]);
    host?.server.close();
  });

  /** Reads every view of a run. */
  async function read(client: Client, runId: string): Promise<void> {
    const views = await Promise.all(
      ["", "/timeline", "/conversation", "/queue"].map((path) => client.get(`/agent/runs/${runId}${path}`)),
    );
    const transcript = await eventually<string | false>(async () => {
      const { status, headers } = await client.call("GET", `/agent/runs/${runId}/transcript`);
      return status === 302 && (await client.fetch(headers.get("location")!)).text;
    });
    answers.push(JSON.stringify([views, await eventsOf(client, runId)]), String(transcript));
  }

  needs("bwrap", "uses every kind of secret, with agents that probe and upstream services that leak", async () => {
    const team = await teamOf(api);
    await api.put(`/team/${team}/secrets/OTHER`, { value: SECRET });
    await api.put(`/team/${team}/secrets/HOST_TOKEN`, { value: HOST_TOKEN });
    const factory = await aFactory(api, FILES);
    const { run_id: work } = await api.post(`/factory/${factory}/runs`, { prompt: "Look." });
    await succeeded(api, work);
    await read(api, work);
    const shown = (await eventsOf(api, work))
      .filter(({ kind }) => kind === "tool_end")
      .map(({ payload }) => payload.output.output)
      .join("");
    expect(shown).toContain("***"); // the secret was there
    expect(shown).toContain(backwards("HOME=/")); // and so were the environments of processes
    for (const secret of [PROVIDER_KEY, HOST_TOKEN, OWNER_KEY]) expect(shown).not.toContain(backwards(secret));
    expect(models.requests.every(({ key }) => key === PROVIDER_KEY)).toBe(true);

    const refused = await startRun(api, "Be refused.");
    expect((await ended(api, refused)).status_message.message).toContain("the key *** may not do this");
    await read(api, refused);

    const { uid: printing } = await api.post("/agent/environments", {
      config: {
        name: "printing",
        secrets: [{ name: "OTHER" }],
        setup_commands: ['echo "setup prints $OTHER" >&2; exit 3'],
      },
    });
    const setUp = await ended(api, await startRun(api, "Look.", { config: { environment_id: printing } }));
    expect([setUp.state, setUp.status_message.message]).toEqual([
      "FAILED",
      expect.stringContaining("setup prints ***"),
    ]);
    await read(api, setUp.run_id);

    await api.post(`/team/${team}/code-hosts`, {
      name: "talkative",
      kind: "github",
      base_url: host.url,
      secret_name: "HOST_TOKEN",
      owners: ["acme"],
    });
    const { uid: cloning } = await api.post("/agent/environments", {
      config: { name: "cloning", github_repos: [{ owner: "acme", repo: "shop" }] },
    });
    const clone = await ended(api, await startRun(api, "Look.", { config: { environment_id: cloning } }));
    expect([clone.state, host.tokens.has(HOST_TOKEN)]).toEqual(["FAILED", true]);
    await read(api, clone.run_id);

    const { url: address } = await aCodeHost(api, "gitlab", { secret: HOST_WEBHOOK });
    for (const [token, status] of [
      [HOST_WEBHOOK, 202],
      [`${HOST_WEBHOOK}x`, 401],
    ] as const)
      expect(
        (
          await api.fetch(address, {
            method: "POST",
            headers: { "x-gitlab-token": token, "x-gitlab-event": "Push Hook" },
            body: '{"object_kind":"push"}',
          })
        ).status,
      ).toBe(status);

    const other = await aTeam(api, "other");
    const theirs = await teamOf(other);
    await other.put(`/team/${theirs}/secrets/ANTHROPIC_API_KEY`, { value: TEAM_PROVIDER_KEY });
    await other.put(`/team/${theirs}/secrets/ANTHROPIC_BASE_URL`, { value: models.url });
    const ours = await startRun(other, "Be refused.");
    expect((await ended(other, ours)).state).toBe("FAILED");
    expect(models.requests.at(-1)).toMatchObject({ key: TEAM_PROVIDER_KEY });
    await read(other, ours);

    const worker = await TestWorker.register(api, "by-hand");
    await api.post("/agent/runs", { prompt: "Leased.", config: { worker_host: "by-hand" } });
    const assignment = (await worker.accept(await worker.offer()))!;
    await worker.start(assignment);
    await api.call("GET", "/whoami", { key: assignment.runToken });
    await worker.complete(assignment, "FAILED", {
      error: { code: "internal_error", message: "It ended.", retryable: false, reason: "by_hand" },
    });
    const { api_key: second, key } = await api.post(`/team/${team}/keys`, { name: "second" });
    await api.call("DELETE", `/team/${team}/keys/${key.uid}`);
    own.push(worker.key, worker.token, assignment.runToken, other.key, second);
  });

  needs("bwrap", "rejects secrets that are sent in the wrong place", async () => {
    const team = await teamOf(api);
    const send = async (
      method: string,
      path: string,
      { headers = {}, body }: { headers?: Record<string, string>; body?: string } = {},
    ): Promise<void> => {
      const answer = await api.fetch(`${platform.url}${path}`, {
        method,
        redirect: "manual",
        headers: { authorization: `Bearer ${OWNER_KEY}`, "content-type": "application/json", ...headers },
        body,
      });
      const outputs = JSON.stringify([answer.status, ...answer.headers, answer.text]);
      // The platform cannot recognize these secrets, so a response may repeat those that its own request contained.
      const asked = path + JSON.stringify(headers) + (body ?? "");
      answers.push(
        [PROVIDER_KEY, TEAM_PROVIDER_KEY, SECRET, HOST_TOKEN, HOST_WEBHOOK].reduce(
          (text, secret) =>
            formsOf(secret).some((form) => asked.includes(form))
              ? formsOf(secret).reduce((left, form) => left.replaceAll(form, ""), text)
              : text,
          outputs,
        ),
      );
    };
    for (const secret of [...own, PROVIDER_KEY, TEAM_PROVIDER_KEY, SECRET, HOST_TOKEN, HOST_WEBHOOK]) {
      const text = encodeURIComponent(secret);
      for (const path of [
        `/${text}`,
        `/api/v1/${text}`,
        `/api/v1/agent/runs/${text}`,
        `/api/v1/team/${text}/secrets`,
        `/docs/${text}`,
        `/blobs/${text}?sig=${text}`,
        `/runs/${work404}?view=${text}`,
        `/errors/${text}`,
      ])
        await send("GET", path);
      for (const name of [
        "cursor",
        "limit",
        "state",
        "source",
        "created_after",
        "artifact_type",
        "ancestor_run_id",
        "sort_by",
      ])
        await send("GET", `/api/v1/agent/runs?${name}=${text}`);
      for (const body of [
        `{"prompt": "${secret}`,
        { prompt: { secret } },
        { prompt: "p", mode: secret },
        { prompt: "p", title: secret.repeat(100) },
        { prompt: "p", config: { model_id: secret } },
        { prompt: "p", skill: secret },
        { prompt: "p", parent_run_id: secret },
        { prompt: "p", conversation_id: secret },
        { prompt: "p", images: [{ data: secret, mime_type: secret }] },
      ])
        await send("POST", "/api/v1/agent/runs", { body: typeof body === "string" ? body : JSON.stringify(body) });
      await send("PUT", `/api/v1/team/${team}/secrets/${text}%20`, { body: JSON.stringify({ value: secret }) });
      await send("PUT", `/api/v1/team/${team}/secrets/TOO_LONG`, { body: JSON.stringify({ value: `${secret}\0` }) });
      await send("POST", `/api/v1/team/${team}/code-hosts`, {
        body: JSON.stringify({ name: "n", kind: "local", root: `/${secret}` }),
      });
      for (const [name, value] of Object.entries({
        traceparent: secret,
        "x-service-team-uid": secret,
        "user-agent": secret,
        accept: secret,
        cookie: `millwright=${secret}`,
        authorization: `Basic ${secret}`,
      }))
        await send("GET", "/api/v1/agent/runs", { headers: { [name]: value } });
      await send("GET", "/api/v1/agent/runs", { headers: { authorization: `Bearer ${secret}x` } });
      await send("POST", "/api/v1/agent/runs", { headers: { "idempotency-key": secret }, body: "{" });
      await send("POST", "/session", {
        headers: { "sec-fetch-site": "same-origin" },
        body: JSON.stringify({ key: `${secret}x` }),
      });
      for (const method of ["Register", "Lease", secret])
        await send("POST", `/rpc/millwright.worker.v1.WorkerService/${encodeURIComponent(method)}`, {
          headers: { authorization: `Bearer ${secret}x` },
          body: JSON.stringify({ workerId: secret, freeSlots: secret }),
        });
    }
    // A request id appears in responses, logs and events, so a key sent as request id must be replaced.
    for (const key of own) await send("GET", "/api/v1/agent/models", { headers: { "x-request-id": key.slice(0, 64) } });
    expect(answers.length).toBeGreaterThan(300);
  });

  needs(
    "bwrap",
    "reveals none of them in responses, traces, metrics, databases, logs, transcripts, blobs or other files",
    async () => {
      const outputs = [
        ...answers,
        ...models.requests.map(({ body }) => JSON.stringify(body)),
        ...collector.bodies.map(({ bytes }) => bytes.toString()),
      ];
      for (const url of metricsUrls(platform))
        outputs.push((await api.fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${api.key}` } })).text);
      const place = { dir: platform.dir, postgres: platform.path("data", "postgres") };
      expect(outputs.filter((text) => text.includes(MODEL_TEXT)).length).toBeGreaterThan(0);
      expect(collector.spans.length).toBeGreaterThan(100);
      const known = await findEverywhere(place, [MODEL_TEXT]);
      expect(known).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/^millwright_orchestrator\.stream\.run_events_\d: /),
          expect.stringContaining("/blobs/"),
        ]),
      );
      const forms = [...own, PROVIDER_KEY, TEAM_PROVIDER_KEY, SECRET, HOST_TOKEN, HOST_WEBHOOK].flatMap(formsOf);
      expect(outputs.flatMap((text) => forms.flatMap((form) => around(text, form)))).toEqual([]);
      expect(await findEverywhere(place, forms)).toEqual([]);
    },
  );
});

const backwards = (text: string): string => Array.from(text).toReversed().join("");

/** Returns the occurrence of a text in another with its surroundings, for failure messages. */
const around = (text: string, form: string): string[] =>
  text.includes(form)
    ? [text.slice(Math.max(0, text.indexOf(form) - 200), text.indexOf(form) + form.length + 100)]
    : [];

const work404 = "0198c2d0-0000-7000-8000-00000000dead";
