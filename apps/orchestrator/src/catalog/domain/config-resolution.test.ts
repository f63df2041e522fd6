import { describe, expect, test } from "@jest/globals";
import type { LayerConfig } from "./agent-config.ts";
import { resolveConfig, type ConfigLayer, type LayerSource } from "./config-resolution.ts";

type Levels = Partial<Record<LayerSource, LayerConfig>>;
const layersOf = (levels: Levels): ConfigLayer[] =>
  Object.entries(levels).map(([source, config]) => ({ source: source as LayerSource, config }));
const resolve = (levels: Levels) => resolveConfig(layersOf(levels));

describe("the most specific level wins", () => {
  const at = (level: string): LayerConfig => ({
    environmentId: level,
    workerHost: level,
    runner: { name: level },
    basePrompt: level,
  });
  test.each([
    [["team"], "team"],
    [["team", "factory"], "factory"],
    [["team", "factory", "agent"], "agent"],
    [["team", "factory", "agent", "dispatcher"], "dispatcher"],
    [["team", "factory", "agent", "dispatcher", "request"], "request"],
    [["request", "team"], "request"],
  ] as const)("among %j: %s", (sources, winner) => {
    const { config, provenance } = resolveConfig(sources.map((source) => ({ source, config: at(source) })));
    expect(config).toMatchObject({
      environmentId: winner,
      workerHost: winner,
      runner: { name: winner },
      basePrompt: winner,
    });
    expect(provenance).toMatchObject({ environmentId: winner, workerHost: winner, runner: winner, basePrompt: winner });
  });

  test("the most specific level is determined for each key separately", () =>
    expect(resolve({ request: { environmentId: "e" }, agent: { workerHost: "w", prompt: "p" } }).config).toMatchObject({
      environmentId: "e",
      workerHost: "w",
      prompt: "p",
    }));
});

describe("model and harness are one unit", () => {
  test.each<[string, Levels, unknown, string]>([
    ["no level sets it", {}, { harness: { type: "oz" } }, "default"],
    ["a model", { agent: { modelId: "m" } }, { harness: { type: "oz" }, modelId: "m" }, "agent"],
    [
      "a harness replaces the model below",
      { agent: { harness: { type: "codex" } }, factory: { modelId: "m" } },
      { harness: { type: "codex" } },
      "agent",
    ],
    [
      "a model replaces the harness below",
      { request: { modelId: "m" }, agent: { harness: { type: "claude" } } },
      { harness: { type: "oz" }, modelId: "m" },
      "request",
    ],
    [
      "the own harness with its model",
      { factory: { harness: { type: "oz", modelId: "m" } } },
      { harness: { type: "oz" }, modelId: "m" },
      "factory",
    ],
    [
      "the top-level model never reaches a third party",
      { request: { modelId: "m", harness: { type: "gemini", modelId: "g" } } },
      { harness: { type: "gemini", modelId: "g" } },
      "request",
    ],
  ])("%s", (_, levels, expected, source) => {
    const { config, provenance } = resolve(levels);
    expect({ harness: config.harness, modelId: config.modelId }).toEqual({
      modelId: undefined,
      ...(expected as object),
    });
    expect(provenance["harness"]).toBe(source);
  });
});

describe("secrets", () => {
  test.each<[string, Levels, string[], string | undefined]>([
    ["none", {}, [], undefined],
    [
      "the agent's list replaces the factory's defaults",
      { agent: { secrets: ["A"] }, factory: { secrets: ["F"] } },
      ["A"],
      "agent",
    ],
    [
      "the dispatcher's list replaces the agent's",
      { dispatcher: { secrets: ["D"] }, agent: { secrets: ["A"] } },
      ["D"],
      "dispatcher",
    ],
    ["an empty list replaces too", { agent: { secrets: [] }, factory: { secrets: ["F"] } }, [], undefined],
    [
      "what the factory grants is always added",
      { agent: { secrets: ["A"] }, factory: { secrets: ["F"], grantedSecrets: ["G"] } },
      ["A", "G"],
      "agent+factory",
    ],
    [
      "a request's are added to the agent's",
      { request: { secrets: ["R", "A"] }, agent: { secrets: ["A"] } },
      ["R", "A"],
      "request+agent",
    ],
  ])("%s", (_, levels, names, source) => {
    const { config, provenance } = resolve(levels);
    expect([config.secrets, provenance["secrets"]]).toEqual([names, source]);
  });
});

describe("MCP servers", () => {
  test("of the most specific level replace those below, and granted ones are added unless redefined", () => {
    const { config, provenance } = resolve({
      request: { mcpServers: { own: 1, shared: 2 } },
      agent: { mcpServers: { agents: 3 } },
      factory: { grantedMcpServers: { granted: 4, shared: 5 } },
    });
    expect(config.mcpServers).toEqual({ own: 1, shared: 2, granted: 4 });
    expect(provenance["mcpServers"]).toBe("request+factory");
  });
});

test.each(["warp", "service"])(
  "the worker host %s means any worker of the platform, and hides the levels below",
  (workerHost) =>
    expect(resolve({ request: { workerHost }, agent: { workerHost: "mine" } }).config.workerHost).toBeUndefined(),
);

test("default values have the provenance default", () => {
  const { config, provenance } = resolve({});
  expect(config).toMatchObject({
    idleTimeoutMinutes: 10,
    computerUseEnabled: true,
    credentialStrategy: "EXECUTOR",
    skills: [],
    secrets: [],
  });
  expect(provenance).toMatchObject({
    idleTimeoutMinutes: "default",
    modelId: "default",
    credentialStrategy: "default",
  });
});

test("the order in which levels are given does not matter", () => {
  const levels: Levels = {
    team: { modelId: "t" },
    agent: { modelId: "a", secrets: ["A"] },
    request: { secrets: ["R"] },
  };
  expect(resolveConfig(layersOf(levels).reverse())).toEqual(resolve(levels));
});
