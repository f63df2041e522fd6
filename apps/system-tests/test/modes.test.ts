import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { eventually } from "@millwright/testing";
import type { Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./support/client.ts";
import { startPlatform } from "./support/deployment.ts";
import { toolServer } from "./support/mcp.ts";
import {
  eventsOf,
  waitForState,
  runOf,
  RUN_TIMEOUT_MS,
  script,
  waitForEvent,
  spawn,
  startRun,
  succeeded,
  effectiveEventsOf,
} from "./support/runs.ts";
import { aFactory, applied, definitionFiles, teamOf } from "./support/resources.ts";

const SERVER = toolServer.config;

let platform: Deployment;
let api: Client;
let environment: string;

beforeAll(async () => {
  platform = await startPlatform({ env: { MILLWRIGHT_MCP_SERVERS: JSON.stringify({ "srv-1": SERVER }) } });
  api = await connect(platform);
  environment = (
    await api.post("/agent/environments", { config: { name: "tools", setup_commands: [toolServer.setup] } })
  ).uid;
});
afterAll(() => platform?.remove());

const followup = (runId: string, message: string, mode?: string) =>
  api.post(`/agent/runs/${runId}/followups`, { message, mode });
const ends = async (runId: string) =>
  (await effectiveEventsOf(api, runId)).filter(({ kind }) => kind === "tool_end").map(({ payload }) => payload);
const childrenOf = async (runId: string): Promise<any[]> =>
  (await api.get(`/agent/runs?ancestor_run_id=${runId}`)).runs;

describe("a run that asks for a plan first", () => {
  test.each(["plan", "orchestrate"])("reads, plans and waits; after approval it continues (%s)", async (mode) => {
    const runId = await startRun(
      api,
      script(
        "list: .",
        "plan: {title: The plan, markdown: '# One'}",
        "write: {path: a.txt, content: a}",
        spawn(script("say: I help.")),
      ),
      { mode },
    );
    const blocked = await waitForState(api, runId, "BLOCKED", "SUCCEEDED", "FAILED", "ERROR");
    expect([blocked.state, blocked.status_message.message]).toEqual([
      "BLOCKED",
      expect.stringMatching(/^awaiting_approval/),
    ]);
    expect(blocked.artifacts).toMatchObject([{ artifact_type: "PLAN", data: { title: "The plan" } }]);
    expect(await childrenOf(runId)).toEqual([]);
    await followup(runId, "Approved.", "normal");
    await succeeded(api, runId);
    expect((await ends(runId)).map(({ name, state }) => [name, state])).toEqual([
      ["file_glob", "completed"],
      ["create_document", "completed"],
      ["edit_files", "completed"],
      ["spawn_run", "completed"],
    ]);
    expect(await childrenOf(runId)).toHaveLength(1);
  });

  test.each([
    ["plan", "write: {path: a.txt, content: a}", "write_file"],
    ["plan", "shell: echo a", "shell"],
    ["orchestrate", spawn(script("say: I help.")), "spawn_run"],
  ])("is denied changes before approval (%s: %s)", async (mode, step, tool) => {
    const runId = await startRun(api, script(step), { mode });
    await waitForState(api, runId, "FAILED");
    expect(await ends(runId)).toMatchObject([
      { state: "denied", output: { error: `${tool} is not allowed before a plan was approved.` } },
    ]);
    expect(await childrenOf(runId)).toEqual([]);
  });

  test("writes another plan after an answer in the same mode", async () => {
    const runId = await startRun(api, script("plan: {title: First, markdown: '1'}", "say: never said"), {
      mode: "plan",
    });
    await waitForState(api, runId, "BLOCKED");
    await followup(runId, script("plan: {title: Second, markdown: '2'}", "write: {path: b.txt, content: b}"), "plan");
    expect((await plansOf(runId, 2)).map(({ input }) => input.title)).toEqual(["First", "Second"]);
    expect((await waitForState(api, runId, "BLOCKED")).status_message.message).toMatch(/^awaiting_approval/);
  });
});

describe("a follow-up to an active session", () => {
  const idle = (runId: string) => waitForEvent(api, runId, ({ kind }) => kind === "turn_end");
  const write = script("write: {path: late.txt, content: late}");

  test.each([undefined, "normal"])("does not approve a plan (mode %s)", async (mode) => {
    const runId = await startRun(api, script("say: I wait."), { mode: "plan", interactive: true });
    await idle(runId);
    expect(await followup(runId, write, mode)).toMatchObject({ outcome: "live_session" });
    await waitForState(api, runId, "FAILED");
    expect(await ends(runId)).toMatchObject([{ name: "edit_files", state: "denied" }]);
  });

  test("in the mode plan denies a normal run nothing", async () => {
    const runId = await startRun(api, script("say: I wait."), { interactive: true });
    await idle(runId);
    expect(await followup(runId, write, "plan")).toMatchObject({ outcome: "live_session" });
    await waitForEvent(api, runId, ({ kind }) => kind === "tool_end");
    expect(await ends(runId)).toMatchObject([{ name: "edit_files", state: "completed" }]);
    await api.post(`/agent/runs/${runId}/cancel`, {});
  });
});

test("a plan that is reported again under its title is the same artifact with its new text", async () => {
  const runId = await startRun(api, script("plan: {title: Plan, markdown: '1'}", "say: never said"), { mode: "plan" });
  const [before] = (await waitForState(api, runId, "BLOCKED")).artifacts;
  await followup(runId, script("plan: {title: Plan, markdown: '2'}", "plan: {title: Other, markdown: '3'}"), "plan");
  await plansOf(runId, 2);
  expect((await runOf(api, runId)).artifacts).toEqual([before]);
  expect(await api.get(`/agent/artifacts/${before.data.artifact_uid}`)).toMatchObject({
    data: { title: "Plan", content: "2" },
  });
});

/** Returns the plans of a run once there are `count`. */
const plansOf = (runId: string, count: number): Promise<any[]> =>
  eventually(
    async () => {
      const plans = (await ends(runId)).filter(({ name }) => name === "create_document");
      expect(plans).toHaveLength(count);
      return plans;
    },
    { timeoutMs: RUN_TIMEOUT_MS, everyMs: 100 },
  );

test("a question blocks the run; after the answer it continues with the next step in the same workspace", async () => {
  const runId = await startRun(
    api,
    script(
      "write: {path: kept.txt, content: kept}",
      "ask: Which name?",
      "shell: cat kept.txt",
      "ask: And which colour?",
      "say: Thank you.",
    ),
  );
  const first = await waitForState(api, runId, "BLOCKED", "FAILED");
  expect([first.state, first.status_message.message]).toEqual(["BLOCKED", expect.stringContaining("Which name?")]);
  await followup(runId, "Ada");
  const asked = await waitForEvent(
    api,
    runId,
    ({ kind, payload }) => kind === "tool_start" && payload.input?.question === "And which colour?",
  );
  expect(asked.execution_id).toBeGreaterThan(
    (await eventsOf(api, runId)).find(({ kind }) => kind === "tool_start").execution_id,
  );
  expect((await waitForState(api, runId, "BLOCKED")).status_message.message).toContain("And which colour?");
  await followup(runId, "Green");
  await succeeded(api, runId);
  expect((await ends(runId)).map(({ name, output }) => [name, output.output])).toEqual([
    ["edit_files", undefined],
    ["ask_user", undefined],
    ["run_command", "kept"],
    ["ask_user", undefined],
  ]);
});

describe("limits", () => {
  const limited = async (config: object, body: object = {}) => {
    const run = await waitForState(
      api,
      await startRun(api, script("say: a", "say: b", "say: c"), { config, ...body }),
      "FAILED",
      "SUCCEEDED",
      "ERROR",
    );
    return [run.state, run.status_message?.error_code, run.status_message?.message];
  };
  const OVER = ["FAILED", "budget_exceeded", "The agent took more than 2 steps."];

  test("of steps end a run; the lowest of all levels applies", async () => {
    expect(await limited({ step_limit: 2 })).toEqual(OVER);
    expect((await limited({ step_limit: 3 }))[0]).toBe("SUCCEEDED");
    const { uid } = await api.post("/agent/identities", {
      name: "limited",
      step_limit: 2,
      token_limit: 10_000,
      cost_limit_usd: 1.5,
    });
    expect(await limited({ step_limit: 9 }, { agent_identity_uid: uid })).toEqual(OVER);
    expect(await api.put(`/agent/identities/${uid}`, { step_limit: 0 })).toMatchObject({
      token_limit: 10_000,
      cost_limit_usd: 1.5,
    });
    expect((await limited({}, { agent_identity_uid: uid }))[0]).toBe("SUCCEEDED");
  });

  test("of an agent that a file defines are set through the API and survive its next version", async () => {
    const factory = await aFactory(api, definitionFiles("No script."));
    const agents: any[] = (await api.get(`/agent/identities?factory_uid=${factory}`)).agents;
    const foreman = agents.find(({ name }) => name === "foreman").uid;
    await api.put(`/agent/identities/${foreman}`, { step_limit: 2 });
    await api.put(`/factory/${factory}/source`, { files: definitionFiles("Another.") });
    await applied(api, factory);
    expect(await api.get(`/agent/identities/${foreman}`)).toMatchObject({
      step_limit: 2,
      prompt: expect.stringContaining("Another."),
    });
    expect(await limited({}, { agent_identity_uid: foreman })).toEqual(OVER);
    expect(
      (await api.call("PUT", `/agent/identities/${foreman}`, { body: { step_limit: 3, name: "other" } })).status,
    ).toBe(409);
  });

  test.each([
    { step_limit: 0 },
    { step_limit: 1_001 },
    { step_limit: 1.5 },
    { token_limit: 0 },
    { cost_limit_usd: 0 },
    { cost_limit_usd: -1 },
    { cost_limit_usd: "1" },
  ])("that are invalid are rejected: %j", async (config) => {
    const { status, body } = await api.call("POST", "/agent/runs", { body: { prompt: "x", config } });
    expect([status, body.detail ?? body.error]).toEqual([
      400,
      expect.stringContaining(`config.${Object.keys(config)[0]}`),
    ]);
  });
});

describe("servers of tools", () => {
  const call = (tool: string, server = "calc", more = "") => `mcp: {server: ${server}, tool: ${tool}${more}}`;

  test("of a run's configuration are started in its sandbox and frozen; their tools are called and their failures reported", async () => {
    const mcp_servers = { calc: SERVER, docs: { warp_id: "srv-1" }, gone: { warp_id: "srv-2" } };
    const steps = [
      call("add", "calc", ', json: \'{"a": 20, "b": 22}\''),
      call("add", "docs", ', json: \'{"a": 1, "b": 2}\''),
      "mcp: {server: gone, tool: add, allow_failure: true}",
      "mcp: {server: calc, tool: die, allow_failure: true}",
      call("add", "calc", ', json: \'{"a": 2, "b": 2}\''),
    ];
    const runId = await startRun(api, script(...steps), { config: { environment_id: environment, mcp_servers } });
    const run = await succeeded(api, runId);
    expect(run.agent_config.mcp_servers).toEqual(mcp_servers);
    expect(
      (await ends(runId)).map(({ name, category, state, output }) => [name, category, state, output.text]),
    ).toEqual([
      ["mcp__calc__add", "integration", "completed", "42"],
      ["mcp__docs__add", "integration", "completed", "3"],
      ["mcp__gone__add", "integration", "failed", undefined],
      ["mcp__calc__die", "integration", "failed", undefined],
      ["mcp__calc__add", "integration", "completed", "4"],
    ]);
    const events = await eventsOf(api, runId);
    expect(events.filter(({ kind }) => kind === "mcp_server_failed").map(({ payload }) => payload)).toEqual([
      { server: "gone", text: expect.stringContaining('No managed MCP server "srv-2"') },
    ]);
    expect(JSON.stringify(await api.get(`/agent/runs/${runId}/conversation`))).toContain("mcp_server_failed");
  });

  test("of an agent and of its factory's files; those of the run take precedence", async () => {
    const team = await teamOf(api);
    await api.put(`/team/${team}/secrets/TOOLS_KEY`, { value: "canary-of-tools" });
    const agent = await api.post("/agent/identities", {
      name: "calculator",
      environment_id: environment,
      secrets: [{ name: "TOOLS_KEY" }],
      mcp_servers: { calc: { ...SERVER, env: { SERVER_KEY: "${TOOLS_KEY}" } } },
    });
    const own = await succeeded(api, await startRun(api, script(call("secret")), { agent_identity_uid: agent.uid }));
    expect((await ends(own.run_id))[0].output.text).toBe("***");
    const replaced = await succeeded(
      api,
      await startRun(
        api,
        script(
          call("add", "other", ', json: \'{"a": 1, "b": 1}\''),
          "mcp: {server: calc, tool: add, allow_failure: true}",
        ),
        { agent_identity_uid: agent.uid, config: { mcp_servers: { other: SERVER } } },
      ),
    );
    expect((await ends(replaced.run_id)).map(({ state }) => state)).toEqual(["completed", "failed"]);

    const files = definitionFiles(script(call("add", "docs", ', json: \'{"a": 4, "b": 4}\''))).map((file) =>
      file.path === "factory.yaml"
        ? {
            ...file,
            content: `${file.content}  environmentId: ${environment}\nmcpServers: {docs: {managedId: srv-1}}\n`,
          }
        : file,
    );
    const factory = await aFactory(api, files);
    const { run_id: runId } = await api.post(`/factory/${factory}/runs`, { prompt: "Add." });
    await succeeded(api, runId);
    expect((await ends(runId))[0].output.text).toBe("8");
  });

  test.each([
    [{ a: { command: "x", url: "https://h.example" } }, "config.mcp_servers.a"],
    [{ a: {} }, "config.mcp_servers.a"],
    [{ a: { url: "ftp://h" } }, "config.mcp_servers.a.url"],
    [{ a: { command: "x", args: [1] } }, "config.mcp_servers.a.args"],
    [{ a: { command: "x", env: { "A B": "c" } } }, "config.mcp_servers.a.env"],
    [{ a: { command: "x", headers: { A: "b" } } }, "config.mcp_servers.a.headers"],
  ])("that are invalid are rejected with the field: %j", async (mcp_servers, field) => {
    const { status, body } = await api.call("POST", "/agent/runs", { body: { prompt: "x", config: { mcp_servers } } });
    expect([status, body.error_code, body.detail ?? body.error]).toEqual([
      400,
      "invalid_request",
      expect.stringContaining(field),
    ]);
  });
});
