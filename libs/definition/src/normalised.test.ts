import { expect, test } from "@jest/globals";
import { filesOf, VALID } from "../test/marked-tree.ts";
import { locate } from "./locate.ts";
import { parseDefinition } from "./parse-definition.ts";
import { TREE_LIMITS } from "./tree.ts";

const full = {
  "factory.yaml": `schemaVersion: v1alpha1
name: Shop
description: All of the shop
alias: Shop.1
credentialStrategy: CREATOR
repositories:
  - { owner: acme/core, name: shop, codeForge: GITLAB }
  - { owner: acme, name: docs }
secrets: [NPM, NPM]
mcpServers: { docs: { warpId: srv-1 } }
cloudProviders:
  gcp: { projectNumber: "12", workloadIdentityFederationPoolId: p, workloadIdentityFederationProviderId: q }
  aws: { roleArn: "arn:1" }
integrations:
  - { type: jira, jira: { projectKeys: [A] } }
  - { type: slack, slack: { autoRespondToThreadReplies: true } }
agentDefaults:
  harness: { type: claude-code, model: m, reasoningLevel: high, auth: { source: managedSecret, secretName: KEY } }
  runner: box
  environmentId: env
  secrets: []
  workerHost: service
scorerDefaults: { runner: box, secrets: [S] }
scoring: { defaultModel: judge }
selfImprovement: { reviewerType: custom, failedRunThreshold: 3, reviewerEmails: [a@b.c] }
`,
  "agents/lead/agent.md": "---\nagentType: MAIN\nmcpServers: { docs: { managedId: srv-2 } }\n---\n\nLead them.\n",
  "agents/hand/agent.md":
    "---\ndescription: does it\nagentType: IMPLEMENT\ncredentialStrategy: EXECUTOR\nmodel: auto\n---\nDo it.",
  "agents/hand/skills/tests/SKILL.md": "---\nname: tests\ndescription: own way\nlicense: MIT\n---\nRun.",
  "skills/tests/SKILL.md": "---\nname: tests\ndescription: common way\n---\nRun all.",
  "skills/tests/scripts/run.sh": "exit 0",
  "skills/broken/SKILL.md": "---\nname: [\n---\nx",
  "runners/box.yaml":
    "setupCommands: [npm ci, npm ci]\nplatform: { linux: { dockerImage: node:24 } }\ninstanceShape: { vcpus: 2, memoryGb: 8 }\n",
  "runners/mac.yaml": "platform: { os: macos }\n",
  "README.md": "not ours",
  "agents/.gitkeep": "",
};

test("normalises a whole tree", () => {
  const { definition, diagnostics } = parseDefinition(filesOf(full));
  expect(diagnostics).toEqual([]);
  expect(definition).toEqual({
    schema_version: "v1alpha1",
    factory: {
      name: "Shop",
      description: "All of the shop",
      alias: "Shop.1",
      credential_strategy: "CREATOR",
      repositories: [
        { owner: "acme/core", repo: "shop", code_forge: "GITLAB" },
        { owner: "acme", repo: "docs" },
      ],
      secrets: ["NPM"],
      mcp_servers: { docs: { warp_id: "srv-1" } },
      cloud_providers: {
        gcp: {
          project_number: "12",
          workload_identity_federation_pool_id: "p",
          workload_identity_federation_provider_id: "q",
        },
        aws: { role_arn: "arn:1" },
      },
      integrations: [
        { type: "jira", jira: { project_keys: ["A"] } },
        { type: "slack", slack: { auto_respond_to_thread_replies: true } },
      ],
      agent_defaults: {
        harness: {
          type: "claude",
          model: "m",
          reasoning_level: "high",
          auth: { source: "managedSecret", secret_name: "KEY" },
        },
        runner: "box",
        environment_id: "env",
        secrets: [],
        worker_host: "warp",
      },
      scorer_defaults: { runner: "box", secrets: ["S"] },
      scoring: { default_model: "judge" },
      self_improvement: { reviewer_type: "custom", failed_run_threshold: 3, reviewer_emails: ["a@b.c"] },
    },
    agents: [
      {
        name: "hand",
        description: "does it",
        agent_type: "IMPLEMENT",
        credential_strategy: "EXECUTOR",
        model: "auto",
        prompt: "Do it.",
        skills: ["tests"],
      },
      {
        name: "lead",
        agent_type: "FOREMAN",
        mcp_servers: { docs: { warp_id: "srv-2" } },
        prompt: "Lead them.",
        skills: ["tests"],
      },
    ],
    runners: [
      {
        name: "box",
        setup_commands: ["npm ci", "npm ci"],
        os: "linux",
        docker_image: "node:24",
        vcpus: 2,
        memory_gb: 8,
      },
      { name: "mac", setup_commands: [], os: "macos", arch: "aarch64", mac_version: "26" },
    ],
    automations: [],
    webhooks: [],
    scorers: [],
    benchmarks: [],
    skills: [
      { name: "tests", agent: "hand", description: "own way", body: "Run.", path: "agents/hand/skills/tests/SKILL.md" },
      {
        name: "broken",
        description: "",
        body: "",
        path: "skills/broken/SKILL.md",
        error: expect.stringContaining("line 3"),
      },
      { name: "tests", description: "common way", body: "Run all.", path: "skills/tests/SKILL.md" },
    ],
  });
});

test.each([
  ["without a name", "---\ndescription: x\n---\nbody", "name is required."],
  ["without a description", "---\nname: s\n---\nbody", "description is required."],
  ["without a body", "---\nname: s\ndescription: x\n---\n", "procedure"],
  ["of no text", new Uint8Array([0xff, 0xfe]), "UTF-8"],
  ["too large", "x".repeat(TREE_LIMITS.fileBytesMax + 1), "bytes"],
])("a skill %s never blocks; the skill has the error", (_what, content, error) => {
  const { definition, diagnostics } = parseDefinition([...filesOf(VALID), { path: "skills/s/SKILL.md", content }]);
  expect(diagnostics).toEqual([]);
  expect(definition?.skills).toMatchObject([{ name: "s", error: expect.stringContaining(error) }]);
  expect(definition?.agents[0]?.skills).toEqual([]);
});

test("the limits of a tree are exact", () => {
  const codes = (files: Parameters<typeof parseDefinition>[0]) =>
    parseDefinition(files).diagnostics.map(({ path, code }) => `${path} ${code}`);
  const valid = filesOf(VALID);
  const pad = (bytes: number) => ({
    path: "runners/box.yaml",
    content: `platform: {linux: {dockerImage: x}}\n#${"p".repeat(bytes - 37)}`,
  });
  expect(codes([...valid, pad(TREE_LIMITS.fileBytesMax)])).toEqual([]);
  expect(codes([...valid, pad(TREE_LIMITS.fileBytesMax + 1)])).toEqual(["runners/box.yaml FF_LIMIT_EXCEEDED"]);
  const many = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ path: `runners/r${index}.yaml`, content: "platform: {os: macos}" }));
  expect(parseDefinition([...valid, ...many(1_998)]).definition).toBeDefined();
  expect(codes([...valid, ...many(1_999)])).toEqual(["factory.yaml FF_LIMIT_EXCEEDED"]);
  expect(parseDefinition([...valid, ...many(1_998), { path: "src/a.ts", content: "" }]).definition).toBeDefined();
  const heavy = Array.from({ length: 11 }, (_, index) => ({
    path: `webhooks/w${index}.yaml`,
    content: "#".repeat(2_000_000),
  }));
  expect(codes([...valid, ...heavy])).toEqual(["factory.yaml FF_LIMIT_EXCEEDED"]);
});

test("a flood of problems ends with a summary", () => {
  const { diagnostics } = parseDefinition(
    filesOf({
      ...VALID,
      "agents/foreman/agent.md": `---\nagentType: FOREMAN\n${Array.from({ length: 2_000 }, (_, n) => `k${n}: 1`).join("\n")}\n---\nx`,
    }),
  );
  expect(diagnostics).toHaveLength(1_001);
  expect(diagnostics.at(-1)).toMatchObject({ path: "factory.yaml", code: "FF_LIMIT_EXCEEDED" });
});

test("rejects a path that is not normalised, or a duplicate one", () => {
  const codes = (path: string) =>
    parseDefinition([...filesOf(VALID), { path, content: "---\n---\nx" }]).diagnostics.map(({ code }) => code);
  for (const path of ["../agents/x/agent.md", "/factory.yaml", "agents//agent.md", "agents\\x\\agent.md", ""])
    expect(codes(path)).toContain("FF_INVALID_VALUE");
  expect(codes("agents/foreman/agent.md")).toContain("FF_DUPLICATE_NAME");
});

test.each<[keys: string[], line: number, column: number]>([
  [["alias"], 2, 10],
  [["secrets", "B"], 3, 14],
  [["repositories", "1"], 6, 5],
  [["repositories", "1", "owner"], 6, 12],
  [["repositories", "2"], 1, 1],
  [["alias", "x"], 1, 1],
  [["absent"], 1, 1],
  [[], 1, 1],
])("finds the value of %j in YAML and in frontmatter", (keys, line, column) => {
  const text = "name: x\nalias:   y\nsecrets: [A, B, B]\nrepositories:\n  - owner: a\n  - owner: b\n";
  expect(locate([{ path: "factory.yaml", content: text }], [{ path: "factory.yaml", keys }])).toEqual([
    { line, column },
  ]);
  const isFound = line > 1 || column > 1;
  expect(
    locate(
      [{ path: "a.md", content: Buffer.from(`---\n${text}---\nsecrets: [B]\n`) }],
      [
        { path: "a.md", keys },
        { path: "b.md", keys },
      ],
    ),
  ).toEqual([
    { line: isFound ? line + 1 : 1, column },
    { line: 1, column: 1 },
  ]);
});
