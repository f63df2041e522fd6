import { describe, expect, test } from "@jest/globals";
import { readLayerConfig } from "./agent-config.ts";

test("reads the public form and ignores null and unknown keys", () =>
  expect(
    readLayerConfig({
      model_id: "m",
      environment_id: null,
      runner_id: "r",
      skill_spec: "o/r:skills/x/SKILL.md",
      secrets: [{ name: "A" }],
      idle_timeout_minutes: 0,
      harness: {},
      credential_strategy: null,
      experimental: { x: 1 },
    }),
  ).toEqual({
    modelId: "m",
    runner: { uid: "r" },
    skills: ["o/r:skills/x/SKILL.md"],
    secrets: ["A"],
    idleTimeoutMinutes: 0,
  }));

test("reads the form of definition files", () =>
  expect(
    readLayerConfig({
      model: "m",
      runner: "small",
      secrets: ["A"],
      factory_secrets: ["G"],
      repositories: [{ owner: "o", name: "r" }],
      harness: { type: "codex", model: "c", reasoning_level: "high" },
    }),
  ).toEqual({
    modelId: "m",
    runner: { name: "small" },
    secrets: ["A"],
    grantedSecrets: ["G"],
    repositories: [{ owner: "o", repo: "r" }],
    harness: { type: "codex", modelId: "c", reasoningLevel: "high" },
  }));

describe("refused", () => {
  test.each([
    [{ skill_spec: "a", skills: ["b"] }, "config_conflict"],
    [{ idle_timeout_minutes: 61 }, "config_invalid"],
    [{ idle_timeout_minutes: 1.5 }, "config_invalid"],
    [{ harness: { type: "vim" } }, "config_invalid"],
    [{ harness: "oz" }, "config_invalid"],
    [{ secrets: [{}] }, "config_invalid"],
    [{ secrets: "A" }, "config_invalid"],
    [{ skills: [1] }, "config_invalid"],
    [{ model_id: 5 }, "config_invalid"],
    [{ credential_strategy: "ANY" }, "config_invalid"],
    [{ mcp_servers: [] }, "config_invalid"],
    [{ step_limit: 0 }, "config_invalid"],
    [{ step_limit: 1_001 }, "config_invalid"],
    [{ token_limit: 1.5 }, "config_invalid"],
    [{ cost_limit_usd: 0 }, "config_invalid"],
    [{ cost_limit_usd: "1" }, "config_invalid"],
    [{ cost_limit_usd: 1_000_001 }, "config_invalid"],
    [{ computer_use_enabled: "yes" }, "config_invalid"],
    [{ repositories: [{ owner: "o" }] }, "config_invalid"],
  ])("%j: %s", (json, reason) =>
    expect(() => readLayerConfig(json)).toThrow(expect.objectContaining({ reason, kind: "invalid_argument" })),
  );
});
