import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { aCaller, domainError } from "@millwright/testing";
import { serviceCaller, type Caller } from "@millwright/caller";
import { newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import type { ResolveRunRequest } from "../src/runs/domain/resolved-run.ts";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";
import { acceptExecution } from "./support/fake-worker.ts";

let p: CatalogPlatform;
let caller: Caller;
let teamUid: TeamUid;
const factoryUid = newUid<FactoryUid>();
const AGENT = newUid();

/** The skill's spec as `GET /agent` lists it. */
const REVIEW = `factory/${factoryUid}:skills/review/SKILL.md`;
beforeEach(async () => {
  p = await catalogPlatform();
  caller = aCaller();
  teamUid = caller.teams[0]!.teamUid;
  const service = p.as(serviceCaller("factories", newUid()));
  const definition = {
    factory: { name: "f", repositories: [{ owner: "acme", repo: "app" }], agent_defaults: {} },
    agents: [],
    runners: [
      { name: "small", setup_commands: ["npm ci"], docker_image: "node:24" },
      { name: "mac", os: "macos", arch: "aarch64" },
      { name: "arm", docker_image: "node:24", arch: "aarch64" },
    ],
    skills: [
      { name: "review", path: "skills/review/SKILL.md", description: "Reviews.", body: "Look closely." },
      { name: "broken", path: "skills/broken/SKILL.md", error: "no description" },
    ],
  };
  await p.definitions.stageDefinition({ factoryUid, teamUid, version: 4n, definition: definition as never }, service);
  await p.definitions.activateDefinition({ factoryUid, version: 4n }, service);
  p.known.agents.set(AGENT, {
    ...{
      agentUid: AGENT,
      agentName: "implementer",
      factoryUid,
      definitionVersion: 4n,
      siblingAgents: ["foreman"],
      agentQueue: { concurrencyLimit: 2, priority: 3, version: 9n },
    },
    layers: [
      {
        source: "agent",
        uid: AGENT,
        version: 1n,
        config: {
          name: "implementer",
          prompt: "You implement.",
          runner: "small",
          skills: ["review", "broken"],
          secrets: [{ name: "AGENT_KEY" }],
        },
      },
      {
        source: "factory",
        uid: factoryUid,
        version: 1n,
        config: { factory_secrets: ["SHARED"], credential_strategy: "CREATOR", on_worker_loss: "fail" },
      },
    ],
  });
  p.known.teamLayer.config = { base_prompt: "Be kind." };
});
afterEach(() => p.close());

const resolve = (over: Partial<ResolveRunRequest> = {}) =>
  p.catalog.resolveRun(caller, { owner: { type: "team", uid: teamUid }, config: {}, ...over });

test("a run of a factory's agent is frozen with everything it needs", async () => {
  const resolved = await resolve({ agentUid: AGENT });
  expect(resolved.frozen).toEqual({
    ...{
      agent_prompt: "You implement.",
      base_prompt: "Be kind.",
      model_id: "scripted",
      provider: "scripted",
      harness: "oz",
    },
    // Without the broken skill.
    skills: [{ name: "review", description: "Reviews.", body: "Look closely.", spec: REVIEW }],
    repositories: [{ owner: "acme", repo: "app" }],
    ...{ setup_commands: ["npm ci"], docker_image: "node:24", env: {}, secret_names: ["AGENT_KEY", "SHARED"] },
    requirements: { harness: "oz", image: "node:24" },
    ...{
      idle_timeout_minutes: 10,
      on_worker_loss: "fail",
      factory_uid: factoryUid,
      agent_uid: AGENT,
      agent_name: "implementer",
      definition_version: 4,
    },
    spawnable_agents: ["foreman"],
    provenance: expect.objectContaining({
      prompt: "agent",
      runner: "agent",
      secrets: "agent+factory",
      basePrompt: "team",
      credentialStrategy: "factory",
      modelId: "default",
    }),
  });
  expect(resolved).toMatchObject({
    executorUid: AGENT,
    queueSettings: { team: { concurrencyLimit: 0 }, agent: { concurrencyLimit: 2, priority: 3, version: 9 } },
    skill: { name: "review", full_path: REVIEW },
  });
  expect(resolved.agentConfig).toMatchObject({
    ...{
      model_id: "scripted",
      harness: { type: "oz" },
      skill_spec: REVIEW,
      secrets: [{ name: "AGENT_KEY" }, { name: "SHARED" }],
    },
    ...{
      credential_strategy: "CREATOR",
      on_worker_loss: "fail",
      computer_use_enabled: true,
      runner_id: expect.any(String),
      base_prompt: "Be kind.",
    },
  });
});

test("a run is labelled by the request, else by its skill, else by its agent", async () => {
  const label = async (over: Partial<ResolveRunRequest>) =>
    (await resolve({ agentUid: AGENT, ...over })).agentConfig["name"];
  expect(await label({})).toBe("implementer");
  expect(await label({ skill: "review" })).toBe("review");
  expect(await label({ skill: "review", config: { name: "mine" } })).toBe("mine");
  expect((await resolve({ agentUid: AGENT, skill: "review" })).frozen.skills).toMatchObject([
    { name: "review", preloaded: true },
  ]);
});

test("a run without an agent has the team's configuration and acts as its creator", async () => {
  const resolved = await resolve({
    config: { model_id: "auto", idle_timeout_minutes: 0, worker_host: "mine", name: "n" },
  });
  expect(resolved.frozen).toMatchObject({
    model_id: "scripted",
    base_prompt: "Be kind.",
    agent_prompt: "",
    repositories: [],
    worker_host: "mine",
    idle_timeout_minutes: 0,
  });
  expect(resolved).toMatchObject({
    executorUid: caller.principal.uid,
    agentConfig: { name: "n", worker_host: "mine" },
  });
});

test("a run below a benchmark trial has the pinned commits of its own repositories and the overrides of its agent", async () => {
  const commit = "a".repeat(40);
  const trial = {
    pinned_repositories: [
      { owner: "Acme", repo: "app", commit },
      { owner: "acme", repo: "other", commit },
    ],
    agent_overrides: { [AGENT]: { idle_timeout_minutes: 3 }, [newUid()]: { idle_timeout_minutes: 4 } },
  };
  const { frozen } = await resolve({ agentUid: AGENT, trial, config: { base_prompt: "Asked." } });
  expect(frozen).toMatchObject({
    repositories: [{ owner: "acme", repo: "app", commit }],
    idle_timeout_minutes: 3,
    base_prompt: "Asked.",
    trial,
  });
  expect(
    (await resolve({ agentUid: AGENT, trial, config: { idle_timeout_minutes: 5 } })).frozen.idle_timeout_minutes,
  ).toBe(5);
});

test("a run needs the architecture that its runner names, and none otherwise", async () => {
  expect((await resolve({ agentUid: AGENT })).frozen.requirements).toEqual({ harness: "oz", image: "node:24" });
  expect((await resolve({ agentUid: AGENT, dispatcherConfig: { runner: "arm" } })).frozen.requirements).toEqual({
    harness: "oz",
    image: "node:24",
    arch: "aarch64",
  });
});

test("a request names a runner by uid and a skill by name; the response contains both, resolved", async () => {
  const { agentConfig } = await resolve({ agentUid: AGENT });
  const named = await resolve({ config: { runner_id: agentConfig["runner_id"]! }, agentUid: AGENT, skill: "review" });
  expect(named.frozen.setup_commands).toEqual(["npm ci"]);
  for (const skill of ["skills/review/SKILL.md", REVIEW])
    expect((await resolve({ agentUid: AGENT, skill })).agentConfig).toEqual(
      (await resolve({ agentUid: AGENT, skill: "review" })).agentConfig,
    );
  await expect(resolve({ agentUid: AGENT, skill: REVIEW.replace(factoryUid, newUid()) })).rejects.toEqual(
    domainError({ reason: "skill_not_found" }),
  );
  expect(named.agentConfig).toMatchObject({ name: "review", skills: [REVIEW], runner_id: agentConfig["runner_id"] });
});

test("an environment adds repositories, commands and secrets, before the factory's", async () => {
  const config = {
    name: "E",
    github_repos: [{ owner: "other", repo: "lib" }],
    setup_commands: ["make"],
    secrets: [{ name: "ENV_KEY" }],
    docker_image: "debian",
  };
  const { environment } = await p.catalogue.createEnvironment(
    { environment: { ownerType: "team", ownerUid: teamUid, config } },
    p.as(caller),
  );
  const { frozen } = await resolve({ agentUid: AGENT, config: { environment_id: environment!.uid } });
  expect(frozen).toMatchObject({
    ...{
      repositories: [{ owner: "other", repo: "lib" }],
      setup_commands: ["npm ci", "make"],
      secret_names: ["AGENT_KEY", "SHARED", "ENV_KEY"],
    },
    ...{ docker_image: "node:24", environment_uid: environment!.uid },
  });
});

test("limits only narrow: the lowest of all levels applies, and is shown", async () => {
  p.known.teamLayer.config = { step_limit: 50, cost_limit_usd: 2.5 } as never;
  const { frozen, agentConfig } = await resolve({
    agentUid: AGENT,
    config: { step_limit: 100, token_limit: 1_000, cost_limit_usd: 3 },
  });
  expect(frozen).toMatchObject({
    step_limit: 50,
    token_limit: 1_000,
    cost_limit_micros: 2_500_000,
    provenance: { stepLimit: "team", tokenLimit: "request", costLimitMicros: "team" },
  });
  expect(agentConfig).toMatchObject({ step_limit: 50, token_limit: 1_000, cost_limit_usd: 2.5 });
});

test("the secret of a third-party harness is sent to the worker alone", async () => {
  p.known.secrets.set("CLAUDE_KEY", "claude-value");
  const config = {
    harness: { type: "claude", model_id: "claude-opus-5-5", reasoning_level: "high" },
    harness_auth_secrets: { claude_auth_secret_name: "CLAUDE_KEY", codex_auth_secret_name: "OTHER" },
    cost_limit_usd: 1,
  };
  expect((await resolve({ config })).frozen).toMatchObject({
    harness: "claude",
    provider: "anthropic",
    model_id: "claude-opus-5-5",
    reasoning_level: "high",
    harness_secret: "CLAUDE_KEY",
    secret_names: [],
    requirements: { harness: "claude" },
  });
  await p.run(caller, { config });
  const { assignment } = await acceptExecution(p, await p.worker({ harness: "claude" }));
  expect(assignment.details).toMatchObject({
    secrets: {},
    providerCredentials: { provider: "anthropic", apiKey: "claude-value", baseUrl: "" },
  });
});

test.each([
  ["gemini", "gemini-3-pro", { provider: "google", model_id: "gemini-3-pro" }],
  ["codex", "gpt-5.1", { provider: "openai", model_id: "gpt-5.1" }],
  ["opencode", "anthropic/claude-next", { provider: "anthropic", model_id: "claude-next" }],
  ["opencode", "openai-compatible/llama", { provider: "openai-compatible", model_id: "llama" }],
])("a run of %s with %s has its own named secret", async (type, model_id, expected) => {
  p.known.secrets.set("KEY", "the-value");
  const config = {
    harness: { type, model_id },
    harness_auth_secrets: { claude_auth_secret_name: "OTHER", [`${type}_auth_secret_name`]: "KEY" },
  };
  const { frozen, agentConfig } = await resolve({ config });
  expect(frozen).toMatchObject({
    harness: type,
    harness_secret: "KEY",
    secret_names: [],
    requirements: { harness: type },
    ...expected,
  });
  expect(agentConfig).toMatchObject(config);
  expect(agentConfig).not.toHaveProperty("model_id");
  await p.run(caller, { config });
  const { assignment } = await acceptExecution(p, await p.worker({ harness: type }));
  expect(assignment.details).toMatchObject({
    secrets: {},
    providerCredentials: { provider: expected.provider, apiKey: "the-value" },
  });
});

describe("refuses", () => {
  test.each<[string, Partial<ResolveRunRequest>, string, string]>([
    ["an unknown agent", { agentUid: newUid() }, "agent_not_found", "not_found"],
    ["an unknown model", { config: { model_id: "nope" } }, "model_unknown", "invalid_argument"],
    ["a disabled model", { config: { model_id: "gpt-5.1" } }, "model_disabled", "invalid_argument"],
    [
      "a harness of any provider without a model of one",
      { config: { harness: { type: "opencode", model_id: "nope" } } },
      "model_unknown",
      "invalid_argument",
    ],
    ["an unknown harness", { config: { harness: { type: "vim" } } }, "config_invalid", "invalid_argument"],
    ["an unknown environment", { config: { environment_id: "x".repeat(22) } }, "environment_not_found", "not_found"],
    ["an unknown runner", { config: { runner_id: newUid() } }, "runner_not_found", "not_found"],
    ["a runner that is no uid", { config: { runner_id: "nonsense" } }, "runner_not_found", "not_found"],
    [
      "a runner of an unsupported system",
      { agentUid: AGENT, config: { runner: "mac" } },
      "runner_unsupported",
      "invalid_argument",
    ],
    ["an unknown skill", { agentUid: AGENT, skill: "nope" }, "skill_not_found", "invalid_argument"],
    ["a broken skill", { agentUid: AGENT, skill: "broken" }, "skill_malformed", "invalid_argument"],
    [
      "two ways of naming skills",
      { config: { skill_spec: "a", skills: ["b"] } },
      "config_conflict",
      "invalid_argument",
    ],
    [
      "a cost limit for a model without a price",
      { config: { harness: { type: "codex", model_id: "some" }, cost_limit_usd: 1 } },
      "cost_limit_unpriced",
      "invalid_argument",
    ],
    ["an MCP server without an address", { config: { mcp_servers: { a: {} } } }, "config_invalid", "invalid_argument"],
    ["a wrong type", { config: { idle_timeout_minutes: "10" } }, "config_invalid", "invalid_argument"],
  ])("%s: %s %s", async (_, request, reason, kind) => {
    await expect(resolve(request)).rejects.toEqual(domainError({ reason, kind }));
  });

  test("a personal run with an agent, or with secrets", async () => {
    const owner = { type: "user", uid: caller.principal.uid } as const;
    await expect(resolve({ owner, agentUid: AGENT })).rejects.toEqual(domainError({ reason: "agent_needs_team" }));
    await expect(resolve({ owner, config: { secrets: [{ name: "A" }] } })).rejects.toEqual(
      domainError({ reason: "secrets_need_team" }),
    );
    expect((await resolve({ owner })).executorUid).toBe(caller.principal.uid);
  });

  test("a personal environment in a team's run; another team's environment is as unknown as a random one", async () => {
    const create = async (who: Caller, ownerType: string, ownerUid: string) =>
      (await p.catalogue.createEnvironment({ environment: { ownerType, ownerUid, config: {} } }, p.as(who)))
        .environment!.uid;
    const personal = await create(caller, "user", caller.principal.uid);
    await expect(resolve({ config: { environment_id: personal } })).rejects.toEqual(
      domainError({ reason: "environment_personal" }),
    );
    const stranger = aCaller();
    const theirs = await create(stranger, "team", stranger.teams[0]!.teamUid);
    await expect(resolve({ config: { environment_id: theirs } })).rejects.toEqual(
      domainError({ reason: "environment_not_found" }),
    );
  });
});

test("ignores settings that only agents and factories may make in a request", async () => {
  const { frozen } = await resolve({
    config: { prompt: "Obey me.", factory_secrets: ["STOLEN"], repositories: [{ owner: "x", repo: "y" }] },
  });
  expect(frozen).toMatchObject({ agent_prompt: "", secret_names: [], repositories: [] });
});

describe("an accepted execution receives", () => {
  test("the values of its secrets, and git credentials separately; none of it is stored", async () => {
    for (const [name, value] of [
      ["AGENT_KEY", "a-value"],
      ["SHARED", "s-value"],
      ["HOST_TOKEN", "t-value"],
    ] as const)
      p.known.secrets.set(name, value);
    await p.catalogue.createCodeHost(
      {
        codeHost: {
          teamUid,
          name: "forge",
          kind: "github",
          baseUrl: "https://forge.test/api/v3",
          secretName: "HOST_TOKEN",
        },
      },
      p.as(caller),
    );
    const run = await p.run(caller, { agentUid: AGENT });
    const { assignment } = await acceptExecution(p, await p.worker());
    expect(assignment.details).toEqual({
      repositories: [
        {
          ...{
            owner: "acme",
            name: "app",
            cloneUrl: "https://forge.test/acme/app.git",
            baseBranch: "",
            baseCommit: "",
            workBranch: `agent/${run.uid}`,
            codeHost: "github",
          },
          authorizationHeader: `Authorization: Basic ${Buffer.from("x-access-token:t-value").toString("base64")}`,
        },
      ],
      secrets: { AGENT_KEY: "a-value", SHARED: "s-value" },
    });
    const { rows } = await p.database.sql.query(
      "SELECT 1 FROM runs r, LATERAL (SELECT to_jsonb(r)::text AS text) t WHERE text LIKE '%-value%'",
    );
    expect(rows).toEqual([]);
  });

  test("public clone URLs if no connection serves the owner", async () => {
    for (const name of ["AGENT_KEY", "SHARED"]) p.known.secrets.set(name, "v");
    await p.run(caller, { agentUid: AGENT });
    const { assignment } = await acceptExecution(p, await p.worker());
    expect(assignment.details.repositories).toMatchObject([
      { cloneUrl: "https://github.com/acme/app.git", authorizationHeader: "" },
    ]);
  });
});
