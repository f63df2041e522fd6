import { expect, test } from "@jest/globals";
import { domainError } from "@millwright/testing";
import { resolveConfig } from "../../catalog/domain/config-resolution.ts";
import { checkJudgeModel, judgeLayers } from "./judge.ts";

const factory = {
  source: "factory" as const,
  config: {
    model_id: "factory/model",
    factory_secrets: ["DEPLOY"],
    factory_mcp_servers: { jira: { url: "https://jira.example" } },
    base_prompt: "Be brief.",
    repositories: [{ owner: "o", repo: "r" }],
    secrets: ["A"],
    environment_id: "e",
  },
};
const resolved = (config: object, below = [factory]) => resolveConfig(judgeLayers(config as never, below)).config;

test("a judge inherits only the default model of the less specific levels", () =>
  expect(resolved({})).toMatchObject({
    modelId: "factory/model",
    harness: { type: "oz" },
    secrets: [],
    mcpServers: {},
    skills: [],
  }));

test("a judge has the settings of its request", () =>
  expect(
    resolved({
      model_id: "own/model",
      runner_id: "r",
      secrets: [{ name: "KEY" }],
      mcp_servers: { docs: { url: "https://docs.example" } },
      step_limit: 9,
    }),
  ).toMatchObject({
    modelId: "own/model",
    runner: { uid: "r" },
    secrets: ["KEY"],
    mcpServers: { docs: { url: "https://docs.example" } },
    stepLimit: 9,
  }));

test.each(["environment_id", "base_prompt", "skill_spec", "prompt", "factory_secrets", "repositories"])(
  "a judge does not take %s of its request",
  (key) => {
    const value = key === "factory_secrets" ? ["X"] : key === "repositories" ? [{ owner: "o", repo: "r" }] : "x";
    const { environmentId, basePrompt, skills, prompt, secrets, repositories } = resolved({ [key]: value });
    expect([environmentId, basePrompt, skills, prompt, secrets, repositories]).toEqual([
      undefined,
      undefined,
      [],
      undefined,
      [],
      undefined,
    ]);
  },
);

test("a model that a level sets for a third-party harness is not inherited", () =>
  expect(
    resolved({}, [{ source: "factory", config: { harness: { type: "claude", model_id: "opus" } } as never }]).modelId,
  ).toBeUndefined());

test("rejects harnesses other than the built-in one", () =>
  expect(() => judgeLayers({ harness: { type: "codex" } }, [])).toThrow(domainError({ reason: "config_conflict" })));

test("a judge without classifications must be scripted", () => {
  const judge = { scorerUid: "s", classifications: [] };
  expect(() => checkJudgeModel(judge, "anthropic/x")).toThrow(domainError({ reason: "config_conflict" }));
  expect(() => checkJudgeModel(judge, "scripted")).not.toThrow();
  expect(() => checkJudgeModel({ ...judge, classifications: ["pass"] }, "anthropic/x")).not.toThrow();
});
