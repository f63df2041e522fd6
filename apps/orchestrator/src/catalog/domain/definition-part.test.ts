import { describe, expect, test } from "@jest/globals";
import { planChange, readDefinitionPart, referencesOf, type DefinitionPart } from "./definition-part.ts";

const DEFINITION = {
  factory: {
    name: "f",
    repositories: [{ owner: "o", repo: "r" }],
    agent_defaults: { model: "auto", worker_host: "host-1" },
  },
  agents: [
    { name: "a", model: "m1", environment_id: "E" },
    { name: "b", harness: { type: "codex", model: "theirs" } },
    { name: "c", harness: { type: "oz", model: "m2" } },
  ],
  runners: [
    {
      name: "small",
      setup_commands: ["npm ci"],
      docker_image: "node:24",
      os: "linux",
      arch: "x86_64",
      vcpus: 2,
      memory_gb: 4,
    },
  ],
  skills: [{ name: "s", path: "skills/s/SKILL.md", description: "d", body: "b" }],
};

test("reads runners, skills and repositories", () => {
  const part = readDefinitionPart(DEFINITION);
  expect(part.repositories).toEqual([{ owner: "o", repo: "r" }]);
  expect(part.runners).toEqual([
    {
      name: "small",
      description: "",
      setupCommands: ["npm ci"],
      dockerImage: "node:24",
      os: "linux",
      arch: "x86_64",
      vcpus: 2,
      memoryGb: 4,
    },
  ]);
  expect(part.skills).toEqual([
    { name: "s", path: "skills/s/SKILL.md", agent: "", description: "d", body: "b", error: "" },
  ]);
});

test("returns references with their position, without models of third-party harnesses", () =>
  expect(referencesOf(DEFINITION)).toEqual({
    runners: [],
    models: [
      { at: { path: "factory.yaml", keys: ["agentDefaults", "model"] }, modelId: "auto" },
      { at: { path: "agents/a/agent.md", keys: ["model"] }, modelId: "m1" },
      { at: { path: "agents/c/agent.md", keys: ["harness", "model"] }, modelId: "m2" },
    ],
    workerHosts: [{ at: { path: "factory.yaml", keys: ["agentDefaults", "workerHost"] }, workerHost: "host-1" }],
    environments: [{ at: { path: "agents/a/agent.md", keys: ["environmentId"] }, environmentId: "E" }],
  }));

test.each([{ runners: {} }, { runners: [{}] }, { skills: [{ name: "s" }] }, { skills: ["x"] }])(
  "%j is malformed",
  (definition) =>
    expect(() => readDefinitionPart(definition)).toThrow(expect.objectContaining({ reason: "definition_malformed" })),
);

describe("a plan", () => {
  const part = readDefinitionPart(DEFINITION);
  const [runner] = part.runners;
  const changed: DefinitionPart = {
    ...part,
    runners: [{ ...runner!, dockerImage: "node:25" }],
    skills: [{ ...part.skills[0]!, path: "skills/t/SKILL.md" }],
  };

  test("creates all resources of the first version", () =>
    expect(planChange(undefined, part).map((item) => item.action)).toEqual(["create", "create"]));
  test("reports unchanged resources and ignores stored members that files do not have", () =>
    expect(
      planChange({ ...part, runners: part.runners.map((one) => ({ ...one, uid: "u" })) }, part).map(
        (item) => item.action,
      ),
    ).toEqual(["unchanged", "unchanged"]));
  test("reports changed fields, deleted and created resources", () =>
    expect(planChange(part, changed)).toEqual([
      { kind: "runner", name: "small", action: "update", changedFields: ["docker_image"] },
      { kind: "skill", name: "skills/s/SKILL.md", action: "delete", changedFields: [] },
      { kind: "skill", name: "skills/t/SKILL.md", action: "create", changedFields: [] },
    ]));
});
