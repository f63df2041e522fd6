/* oxlint-disable jest/no-standalone-expect -- needs() declares the tests */
import { execFile, execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect } from "@jest/globals";
import { eventually, ModelServer, needs, type ModelAnswer, type ModelRequest } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { bareRepository, git } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { ended, eventsOf, startRun, succeeded } from "./support/runs.ts";
import { aFactory, aTeam, teamOf } from "./support/resources.ts";

const PLATFORM_KEY = "canary-key-of-the-platform";
const TEAM_KEY = "canary-key-of-a-team";
const OTHER_SECRET = "canary-of-another-secret";
const FILES = [
  {
    path: "factory.yaml",
    content:
      "schemaVersion: v1alpha1\nname: Works\nrepositories:\n  - {owner: acme, name: shop}\nsecrets: [OTHER]\nagentDefaults:\n  model: auto\n",
  },
  {
    path: "agents/foreman/agent.md",
    content: "---\ndescription: Works.\nagentType: FOREMAN\n---\n\nFix what is asked.\n",
  },
];

let models: ModelServer;
/** Resolved when the client has received the first part of a slow model response. */
const readerReceived = Promise.withResolvers<void>();
let platform: Deployment;
let api: Client;
let repository: string;

/** Chooses the model's answer by the conversation, so that concurrent runs can use it. */
function fixTests({ key, body }: ModelRequest): ModelAnswer {
  const steps = (body["messages"] as { role: string }[]).filter(({ role }) => role === "assistant").length;
  if (key === "wrong") return { status: 401, message: `invalid x-api-key: ${key}` };
  if (JSON.stringify(body["messages"]).includes("Only talk"))
    return { text: "I only talk.", usage: { input: 7, output: 3 } };
  if (JSON.stringify(body["messages"]).includes("Speak slowly"))
    return {
      text: `I write slowly, and never ${PLATFORM_KEY} at all.`,
      usage: { input: 7, output: 3 },
      until: readerReceived.promise,
    };
  if (JSON.stringify(body["messages"]).includes("Keep watch")) return watchCommand(steps);
  const answers: ModelAnswer[] = [
    { status: 529, message: "overloaded" },
    {
      text: "I fix it.",
      calls: [
        { name: "edit_file", input: { path: "price.txt", old: "ten", new: "nine" } },
        { name: "shell", input: { command: 'env; cat price.txt; echo "$OTHER"' } },
      ],
      usage: { input: 1_000, output: 200, cacheWrite: 3_000 },
    },
    {
      calls: [{ name: "pull_request", input: { title: "Lower the price" } }],
      usage: { input: 501, output: 33, cacheRead: 3_001 },
    },
    { text: "The price is nine.", usage: { input: 11, output: 7, cacheRead: 4_000 } },
  ];
  return answers[models.requests.length === 1 ? 0 : steps + 1]!;
}

/** Starts a background command, makes it continue, reads its output, and ends it. */
function watchCommand(steps: number): ModelAnswer {
  const usage = { input: 1, output: 1 };
  const command = "echo first; until [ -e go ]; do sleep 0.05; done; echo second; touch went; exec sleep 1000";
  const answers: ModelAnswer[] = [
    { calls: [{ name: "shell", input: { command, background: true } }], usage },
    { calls: [{ name: "shell", input: { command: "touch go; until [ -e went ]; do sleep 0.05; done" } }], usage },
    { calls: [{ name: "shell_output", input: { id: "bg-1" } }], usage },
    { calls: [{ name: "shell_kill", input: { id: "bg-1" } }], usage },
  ];
  return answers[steps] ?? { text: "It is quiet.", usage };
}

beforeAll(async () => {
  models = await ModelServer.start(fixTests);
  platform = await startPlatform({ env: { ANTHROPIC_API_KEY: PLATFORM_KEY, ANTHROPIC_BASE_URL: models.url } });
  api = await connect(platform);
  repository = bareRepository(platform.path("repositories"), "acme", "shop", { "price.txt": "ten\n" });
});
afterAll(async () => {
  await platform?.remove();
  await models?.stop();
});

const everyPath = (runId: string) =>
  ["", "/timeline", "/conversation", "/queue"].map((path) => `/agent/runs/${runId}${path}`);

needs(
  "bwrap",
  "a model edits, runs a command and opens a pull request; tokens and cost are those of the provider; no secret is revealed",
  async () => {
    const team = await teamOf(api);
    await api.put(`/team/${team}/secrets/OTHER`, { value: OTHER_SECRET });
    await api.post(`/team/${team}/code-hosts`, { name: "local", kind: "local", root: platform.path("repositories") });
    const factory = await aFactory(api, FILES);
    const { run_id: runId } = await api.post(`/factory/${factory}/runs`, { prompt: "Make it nine." });
    const run = await succeeded(api, runId);
    expect(run.agent_config.model_id).toBe("claude-opus-5-5");
    expect(git(repository, "show", `agent/${runId}:price.txt`)).toBe("nine\n");
    expect(run.artifacts.map(({ artifact_type: type }: any) => type)).toEqual(["PULL_REQUEST"]);

    // 1,512 input tokens at $4, 240 output tokens at $20, 7,001 cache reads at $0.20 and 3,000 cache writes at $5 per
    // million. Each call is rounded to the micro-dollar.
    expect(run.request_usage).toMatchObject({ total_tokens: 11_753, inference_cost_usd: 0.027_248 });
    expect(
      run.request_usage.usage_by_category.primary_agent.direct_api_inference_usage["claude-opus-5-5"].token_count,
    ).toEqual({ input: 1_512, output: 240, input_cache_read: 7_001, input_cache_write: 3_000 });
    // The operator's key.
    expect(run.request_usage.model_token_usage.map(({ usage_type: type }: any) => type)).toEqual(["warp"]);

    const events = await eventsOf(api, runId);
    expect(events.filter(({ kind }) => kind === "model_retry").map(({ payload }) => payload)).toEqual([
      expect.objectContaining({ text: expect.stringContaining("529: overloaded"), status: 529, try: 2 }),
    ]);
    const shown = events
      .filter(({ kind, payload }) => kind === "tool_end" && payload.name === "run_command")
      .map(({ payload }) => payload.output.output)
      .join("");
    expect(shown).toContain("nine\n***\n");
    const transcript = await eventually(async () => {
      const { status, headers } = await api.call("GET", `/agent/runs/${runId}/transcript`);
      return status === 302 && (await api.fetch(headers.get("location")!)).text;
    });
    const deltas = [
      events,
      await Promise.all(everyPath(runId).map((path) => api.get(path))),
      transcript,
      models.requests.map(({ body }) => body),
    ];
    expect(JSON.stringify(deltas)).toContain("I fix it.");
    expect(JSON.stringify(deltas)).not.toContain("canary-");
    expect(models.requests.every(({ key }) => key === PLATFORM_KEY)).toBe(true);
  },
);

needs("bwrap", "the output of a background command is read while others run, and the command is ended", async () => {
  const runId = await startRun(api, "Keep watch.");
  await succeeded(api, runId);
  const outputs = (await eventsOf(api, runId))
    .filter(({ kind }) => kind === "tool_end")
    .map(({ payload }) => payload.output);
  expect(outputs).toMatchObject([
    { id: "bg-1", running: true },
    { exit_code: 0 },
    { id: "bg-1", running: true },
    { id: "bg-1", running: false },
  ]);
  expect([outputs[2].output, outputs[3].output].join("")).toBe("first\nsecond\n");
});

needs(
  "bwrap",
  "a cost limit ends the run before a call without remaining budget; child runs share it; a model without a price is rejected",
  async () => {
    const limited = { model_id: "claude-opus-5-5", cost_limit_usd: 0.02 };
    // The first call costs $0.023: 1,000 input tokens, 200 output tokens and 3,000 cache writes.
    const run = await ended(api, await startRun(api, "Fix it.", { config: limited }));
    expect(run.agent_config).toMatchObject(limited);
    expect([run.state, run.status_message.error_code, run.status_message.message]).toEqual([
      "FAILED",
      "budget_exceeded",
      "This run and its descendants have cost $0.023; the cost limit is $0.02.",
    ]);
    expect(run.request_usage.inference_cost_usd).toBe(0.023);
    const parent = await startRun(
      api,
      "````scripted\n- spawn:\n    prompt: Mend it.\n- wait: {policy: all, allow_failure: true}\n- say: done\n````",
      { config: { model_id: "scripted", cost_limit_usd: 0.02 } },
    );
    await succeeded(api, parent);
    const [child] = (await api.get(`/agent/runs?ancestor_run_id=${parent}`)).runs;
    expect([child.state, child.status_message.message]).toEqual([
      "FAILED",
      `The ancestor run ${parent} and its descendants have cost $0.023; the cost limit is $0.02.`,
    ]);
    const { status, body } = await api.call("POST", "/agent/runs", {
      body: { prompt: "x", config: { model_id: "anthropic/claude-next", cost_limit_usd: 1 } },
    });
    expect([status, body.error_code, body.reason]).toEqual([400, "invalid_request", "cost_limit_unpriced"]);
  },
);

needs(
  "bwrap",
  "a team's own key is used only for its runs, and a rejected key ends the run with a reason that does not reveal it",
  async () => {
    const other = await aTeam(api, "other");
    const own = await teamOf(other);
    await other.put(`/team/${own}/secrets/ANTHROPIC_API_KEY`, { value: TEAM_KEY });
    await other.put(`/team/${own}/secrets/ANTHROPIC_BASE_URL`, { value: models.url });
    const { default_model_id: byDefault, models: listed } = await other.get("/agent/models");
    expect([byDefault, listed.find(({ id }: any) => id === "gpt-5.1").disabled]).toEqual(["claude-opus-5-5", true]);
    const run = await succeeded(
      other,
      await startRun(other, "Only talk.", { config: { model_id: "anthropic/claude-next" } }),
    );
    expect(models.requests.at(-1)).toMatchObject({ key: TEAM_KEY, model: "claude-next" });
    expect(run.request_usage).toMatchObject({
      total_tokens: 10,
      model_token_usage: [{ usage_type: "custom_endpoint" }],
    }); // The team's own key at its own address.
    expect(run.request_usage).not.toHaveProperty("inference_cost_usd"); // The platform has no price for this model.

    await other.put(`/team/${own}/secrets/ANTHROPIC_API_KEY`, { value: "wrong" });
    const refused = await ended(other, await startRun(other, "Only talk."));
    expect([refused.state, refused.status_message.error_code]).toEqual(["FAILED", "external_authentication_required"]);
    expect(refused.status_message.message).toContain("401: invalid x-api-key: ***");
  },
);

needs(
  "bwrap",
  "the URL of an OpenAI-compatible server, as the only secret, makes its first model the default",
  async () => {
    const plain = await startPlatform();
    try {
      const owner = await connect(plain);
      const id = "openai-compatible/default";
      const listed = async () => {
        const { default_model_id: byDefault, models: all } = await owner.get("/agent/models");
        return { byDefault, model: all.find((model: any) => model.id === id) };
      };
      expect(await listed()).toMatchObject({
        byDefault: "scripted",
        model: { disabled: true, disabled_message: expect.stringContaining("OPENAI_COMPATIBLE_BASE_URL") },
      });
      await owner.put(`/team/${await teamOf(owner)}/secrets/OPENAI_COMPATIBLE_BASE_URL`, { value: `${models.url}/v1` });
      expect(await listed()).toMatchObject({ byDefault: id, model: { disabled: false } });
      const run = await succeeded(owner, await startRun(owner, "Only talk."));
      expect(run.agent_config.model_id).toBe(id);
      expect(models.requests.at(-1)).toMatchObject({
        wire: "openai-compatible",
        model: "served-model",
        key: undefined,
      });
    } finally {
      await plain.remove();
    }
  },
);

/**
 * Returns what a foreman or an implementer does without a script. The system prompt and the number of steps determine
 * the answer.
 */
function demonstrate({ body }: ModelRequest): ModelAnswer {
  const steps = (body["messages"] as { role: string }[]).filter(({ role }) => role === "assistant").length;
  const usage = { input: 100, output: 10 };
  const isForeman = JSON.stringify(body["system"]).includes("You are the foreman");
  const foreman: ModelAnswer[] = [
    {
      calls: [
        { name: "spawn_run", input: { agent: "implementer", prompt: "Fix lineTotal." } },
        { name: "wait", input: { policy: "all" } },
      ],
      usage,
    },
    { calls: [{ name: "set_stage", input: { stage: "REVIEW" } }], usage },
  ];
  const implementer: ModelAnswer[] = [
    {
      text: "I read.",
      calls: [
        { name: "read_file", input: { path: "src/total.js" } },
        { name: "shell", input: { command: "node --test" } },
      ],
      usage,
    },
    {
      calls: [
        {
          name: "edit_file",
          input: { path: "src/total.js", old: "quantity > BULK_QUANTITY", new: "quantity >= BULK_QUANTITY" },
        },
        { name: "shell", input: { command: "node --test" } },
      ],
      usage,
    },
    { calls: [{ name: "pull_request", input: { title: "Give the discount from ten items on" } }], usage },
  ];
  return (isForeman ? foreman : implementer)[steps] ?? { text: "It is done.", usage };
}

needs("bwrap", "a model that follows its agents' instructions completes the demo's work", async () => {
  const server = await ModelServer.start(demonstrate);
  const demo = fileURLToPath(new URL("../../standalone/src/demo/main.ts", import.meta.url));
  const { PATH = "", HOME = "" } = process.env;
  const env = { PATH, HOME, ANTHROPIC_API_KEY: PLATFORM_KEY, ANTHROPIC_BASE_URL: server.url };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--conditions=@millwright/source", "--no-warnings", demo, "--model", "claude-sonnet-4-5"],
    { env },
  );
  await server.stop();
  expect(stdout).toContain("stage REVIEW");
  // Seven calls of 100 input tokens at $3 and 10 output tokens at $15 per million.
  expect(stdout).toContain("$0.003150 for model calls  (770 tokens)");
  expect(stdout).not.toContain(PLATFORM_KEY);
});

needs("bwrap", "no key is in the platform's database, logs, blobs or workspaces", () => {
  const found = (text: string) =>
    execFileSync("sh", ["-c", 'grep -rlaF -e "$1" "$2" || true', "sh", text, platform.dir], { encoding: "utf8" });
  expect(found("I fix it.")).not.toBe("");
  for (const secret of [PLATFORM_KEY, TEAM_KEY, OTHER_SECRET]) expect(found(secret)).toBe("");
});

needs(
  "bwrap",
  "the text of a model is streamed to readers while it is generated, masked, and is no event of the run",
  async () => {
    const runId = await startRun(api, "Speak slowly.");
    const response = await fetch(`${api.url}/api/v1/agent/runs/${runId}/events`, {
      headers: { authorization: `Bearer ${api.key}`, accept: "text/event-stream" },
    });
    let text = "";
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes as Uint8Array, { stream: true });
      if (text.includes("event: text_delta")) readerReceived.resolve();
    }
    await succeeded(api, runId);
    const deltas = [...text.matchAll(/^event: text_delta\ndata: (.+)$/gm)].map(([, data]) => JSON.parse(data!));
    const step = (await eventsOf(api, runId)).find(({ kind }) => kind === "model_step");
    expect(deltas.length).toBeGreaterThan(0);
    for (const { step_id: id, offset, text: piece } of deltas)
      expect([id, step.payload.text.slice(offset, offset + piece.length)]).toEqual([step.payload.step_id, piece]);
    expect(step.payload.text).toBe("I write slowly, and never *** at all.");
    expect((await eventsOf(api, runId)).map(({ kind }) => kind)).not.toContain("text_delta");
  },
);
