import { expect, test } from "@jest/globals";
import { parseDefinition } from "@millwright/definition";
import { changedSettings, defineBy, settingsFrom } from "./factory-from-definition.ts";
import { newSettings, type Factory } from "./factory.ts";

const definitionOf = (factoryYaml: string) => {
  const { definition, diagnostics } = parseDefinition([
    { path: "factory.yaml", content: `schemaVersion: v1alpha1\nname: Shop\n${factoryYaml}\n` },
    { path: "agents/lead/agent.md", content: "---\nagentType: FOREMAN\n---\nLead." },
    { path: "runners/box.yaml", content: "platform: { linux: { dockerImage: x } }" },
  ]);
  if (!definition) throw new Error(JSON.stringify(diagnostics));
  return definition;
};
const NOW = new Date("2026-11-20T00:00:00Z");
const live = {
  ...newSettings({ name: "Live", description: "by hand" }),
  management: "live",
  currentVersion: 0,
  version: 3,
} as Factory;

test.each([
  [
    "a model",
    "repositories: []\nagentDefaults: { model: auto }",
    { defaultModel: "auto", codeForge: "NONE", integrations: null },
  ],
  [
    "the built-in harness",
    "repositories: []\nagentDefaults: { harness: { type: oz, model: m } }",
    { defaultModel: "m" },
  ],
  [
    "another harness has no default model of ours",
    "repositories: []\nagentDefaults: { harness: { type: gemini, model: g } }",
    { defaultModel: null },
  ],
  [
    "named forges",
    "repositories: [{ owner: a, name: b }]\ncodeForges: [GITLAB]\nagentDefaults: { model: auto }",
    { codeForge: "GITLAB", codeForges: ["GITLAB"] },
  ],
  [
    "forges",
    "repositories: [{ owner: a, name: b, codeForge: GITLAB }, { owner: a, name: c }]\nagentDefaults: { model: auto }",
    { codeForge: "GITLAB", codeForges: ["GITLAB", "GITHUB"] },
  ],
  [
    "integrations declared empty",
    "repositories: []\nintegrations: []\nagentDefaults: { model: auto }",
    { integrations: [] },
  ],
  [
    "scoring",
    "repositories: []\nscoring: { defaultModel: j }\nscorerDefaults: { secrets: [] }\nagentDefaults: { model: auto }",
    { scoringDefaultModel: "j", scorerDefaults: { secrets: [] } },
  ],
  [
    "self-improvement",
    "repositories: []\nselfImprovement: { reviewerType: custom, reviewerEmails: [a@b.c] }\nagentDefaults: { model: auto }",
    { selfImprovement: { reviewer_type: "custom", reviewer_emails: ["a@b.c"] } },
  ],
])("the record shows %s", (_what, yaml, settings) => {
  expect(settingsFrom(definitionOf(yaml))).toMatchObject(settings);
});

test("agent defaults are the public record, with what the factory grants to everyone added", () => {
  const yaml = `repositories: []
secrets: [ALL, KEY]
mcpServers: { docs: { warpId: d } }
agentDefaults:
  harness: { type: claude-code, model: m, reasoningLevel: high, auth: { source: managedSecret, secretName: KEY } }
  runner: box
  environmentId: env
  secrets: [KEY]
  mcpServers: { own: { warpId: o } }
  workerHost: big-box`;
  expect(settingsFrom(definitionOf(yaml))).toMatchObject({
    defaultEnvironment: "env",
    agentDefaults: {
      default_runner_uid: "box",
      worker_host: "big-box",
      secrets: [{ name: "KEY" }, { name: "ALL" }],
      mcp_servers: { own: { warp_id: "o" }, docs: { warp_id: "d" } },
      harness: { type: "claude", model_id: "m", reasoning_level: "high" },
      harness_auth_secrets: { claude_auth_secret_name: "KEY" },
    },
  });
});

test.each(["claude", "codex", "gemini", "opencode"])("the named secret of %s is its own", (type) => {
  const yaml = `repositories: []\nagentDefaults: { harness: { type: ${type}, model: m, auth: { source: managedSecret, secretName: KEY } } }`;
  expect(settingsFrom(definitionOf(yaml)).agentDefaults).toMatchObject({
    harness_auth_secrets: { [`${type}_auth_secret_name`]: "KEY" },
  });
});

test("a definition replaces every setting, including those that it omits", () => {
  const definition = definitionOf("repositories: []\nagentDefaults: { model: auto }");
  expect(changedSettings(live, { definition, before: undefined })).toEqual(["default_model", "description", "name"]);
  const next = defineBy(live, { definition, before: undefined }, 4, "external_files", NOW);
  expect(next).toMatchObject({
    name: "Shop",
    description: null,
    management: "external_files",
    currentVersion: 4,
    version: 4,
    updatedAt: NOW,
  });
  expect(changedSettings(next, { definition, before: definition })).toEqual([]);
});

test("an alias that was set at creation stays until a definition names one, and is removed with that definition", () => {
  const defaults = "repositories: []\nagentDefaults: { model: auto }";
  const [without, named] = [definitionOf(defaults), definitionOf(`alias: filed\n${defaults}`)];
  const first = defineBy(
    { ...live, alias: "made" },
    { definition: without, before: undefined },
    4,
    "external_files",
    NOW,
  );
  expect(first.alias).toBe("made");
  expect(changedSettings(first, { definition: without, before: without })).toEqual([]);
  const second = defineBy(first, { definition: named, before: without }, 5, "external_files", NOW);
  expect(second.alias).toBe("filed");
  expect(defineBy(second, { definition: without, before: named }, 6, "external_files", NOW).alias).toBeNull();
});
