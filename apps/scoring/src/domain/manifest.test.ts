import { describe, expect, test } from "@jest/globals";
import { manifestHash, withoutIdentifiers, type ManifestContent } from "./manifest.ts";

const CONTENT: ManifestContent = {
  format: "millwright.benchmark.v1",
  runners: [],
  repetition_count: 2,
  agents: [],
  configurations: [],
  scorers: [],
  tasks: [
    {
      title: "t",
      prompt: "p",
      success_criteria: "c",
      rule: null,
      tags: ["a"],
      labels: {},
      repositories: [{ code_forge: "github", owner: "o", repo: "r", commit: "0".repeat(40) }],
    },
  ],
};

describe("the hash of a manifest", () => {
  test("is SHA-256 in hex and does not depend on the order of members", () => {
    const { tasks, ...others } = CONTENT;
    expect(manifestHash(CONTENT)).toMatch(/^[0-9a-f]{64}$/);
    expect(manifestHash({ tasks, ...others })).toBe(manifestHash(CONTENT));
    expect(manifestHash(JSON.parse(JSON.stringify(CONTENT)) as ManifestContent)).toBe(manifestHash(CONTENT));
  });

  test("changes with any part of the content", () => {
    const [task] = CONTENT.tasks;
    const changed: ManifestContent[] = [
      { ...CONTENT, repetition_count: 3 },
      { ...CONTENT, tasks: [{ ...task!, success_criteria: "d" }] },
      { ...CONTENT, tasks: [{ ...task!, repositories: [{ ...task!.repositories[0]!, commit: "1".repeat(40) }] }] },
    ];
    expect(new Set([CONTENT, ...changed].map(manifestHash)).size).toBe(4);
  });
});

test("configurations lose the members that identify records of one installation, at any depth", () => {
  const uid = "0199c2f0-1111-7abc-8def-0123456789ab";
  const config = {
    model_id: "m",
    environment_id: "e",
    runner_id: uid,
    runner: "linux",
    mcp_servers: { jira: { warp_id: "x" }, web: { url: "https://w" } },
    memory_stores: [{ uid }],
    list: [uid, "kept"],
  };
  expect(withoutIdentifiers(config)).toEqual({
    model_id: "m",
    runner: "linux",
    mcp_servers: { jira: {}, web: { url: "https://w" } },
    list: ["kept"],
  });
});
