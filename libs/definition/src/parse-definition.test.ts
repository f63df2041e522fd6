import { describe, expect, test } from "@jest/globals";
import { errorsOf, filesOf, unmark, VALID } from "../test/marked-tree.ts";
import { parseDefinition } from "./parse-definition.ts";

/** The errors found in, and marked in, files that are laid over a valid tree. */
const check = (marked: Record<string, string>) => {
  const { files, expected } = unmark({ ...VALID, ...marked });
  return { found: errorsOf(files), expected };
};

const FACTORY = (changes: { head?: string; tail?: string; repositories?: string; defaults?: string }) => ({
  "factory.yaml": [
    changes.head ?? "schemaVersion: v1alpha1\nname: Sample\n",
    changes.repositories ?? "repositories: []\n",
    changes.defaults ?? "agentDefaults: { model: auto }\n",
    changes.tail ?? "",
  ].join(""),
});
const AGENT = (frontmatter: string, body = "Do it.") => ({ "agents/worker/agent.md": `---\n${frontmatter}\n---\n${body}\n` });
const RUNNER = (text: string) => ({ "runners/box.yaml": text });

describe("factory.yaml: every fault is reported at its place", () => {
  test.each([
    ["unknown field", FACTORY({ tail: "§FF_UNKNOWN_FIELD§colour: red\n" })],
    ["keys are case-sensitive", FACTORY({ tail: "§FF_UNKNOWN_FIELD§Alias: x\n" })],
    ["all required keys", { "factory.yaml": "§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§alias: x\n" }],
    ["empty document", { "factory.yaml": "§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§# nothing\n" }],
    ["not a mapping", { "factory.yaml": "\n§FF_INVALID_TYPE§- a\n" }],
    ["other schema version", FACTORY({ head: "schemaVersion: §FF_UNSUPPORTED_VERSION§v2\nname: x\n" })],
    ["number as text", FACTORY({ head: "schemaVersion: v1alpha1\nname: §FF_INVALID_TYPE§12\n" })],
    ["blank name", FACTORY({ head: "schemaVersion: v1alpha1\nname: §FF_INVALID_VALUE§'  '\n" })],
    ["characters that cannot be stored", FACTORY({ tail: 'alias: §FF_INVALID_VALUE§"a\\0"\ndescription: §FF_INVALID_VALUE§"\\uD800"\nmcpServers: {§FF_INVALID_VALUE§"\\0": {warpId: x}}\n' })],
    ["long name", FACTORY({ head: `schemaVersion: v1alpha1\nname: §FF_INVALID_VALUE§${"n".repeat(101)}\n` })],
    ["key without value", FACTORY({ tail: "§FF_INVALID_TYPE§description:\n" })],
    ["alias with a slash", FACTORY({ tail: "alias: §FF_INVALID_VALUE§a/b\n" })],
    ["credential strategy", FACTORY({ tail: "credentialStrategy: §FF_INVALID_VALUE§executor\n" })],
    ["repositories not a list", FACTORY({ repositories: "repositories: §FF_INVALID_TYPE§{}\n" })],
    ["repository without name", FACTORY({ repositories: "repositories:\n  - §FF_MISSING_FIELD§owner: a\n" })],
    ["repository twice, in other case", FACTORY({ repositories: "repositories:\n  - {owner: a, name: b}\n  - §FF_DUPLICATE_NAME§{owner: A, name: B}\n" })],
    ["repository that walks up", FACTORY({ repositories: "repositories:\n  - {owner: §FF_INVALID_VALUE§a/.., name: §FF_INVALID_VALUE§..}\n" })],
    ["unknown forge", FACTORY({ repositories: "repositories: [{owner: a, name: b, codeForge: §FF_INVALID_VALUE§SVN}]\n" })],
    ["secrets hold a number", FACTORY({ tail: "secrets: [A, §FF_INVALID_TYPE§5]\n" })],
    ["managed server without reference", FACTORY({ tail: "mcpServers:\n  §FF_MISSING_FIELD§docs: {}\n" })],
    ["managed server with a command", FACTORY({ tail: "mcpServers:\n  docs: {warpId: x, §FF_UNKNOWN_FIELD§command: sh}\n" })],
    ["both reference keys", FACTORY({ tail: "mcpServers:\n  docs: {warpId: x, §FF_CONFLICTING_FIELDS§managedId: x}\n" })],
    ["unquoted project number", FACTORY({ tail: "cloudProviders:\n  §FF_MISSING_FIELD§§FF_MISSING_FIELD§gcp: {projectNumber: §FF_INVALID_TYPE§12}\n" })],
    ["aws without role", FACTORY({ tail: "cloudProviders:\n  §FF_MISSING_FIELD§aws: {}\n" })],
    ["github is no integration", FACTORY({ tail: "integrations:\n  - type: §FF_INVALID_VALUE§github\n" })],
    ["integration twice", FACTORY({ tail: "integrations:\n  - type: slack\n  - type: §FF_DUPLICATE_NAME§slack\n" })],
    ["linear and jira", FACTORY({ tail: "integrations:\n  - type: jira\n  - type: §FF_CONFLICTING_FIELDS§linear\n" })],
    ["settings of another type", FACTORY({ tail: "integrations:\n  - type: slack\n    §FF_CONFLICTING_FIELDS§jira: {projectKeys: [A]}\n" })],
    ["settings that do not exist", FACTORY({ tail: "integrations:\n  - type: slack\n    slack: {§FF_UNKNOWN_FIELD§teamIds: []}\n" })],
    ["model and harness", FACTORY({ defaults: "agentDefaults:\n  model: auto\n  §FF_CONFLICTING_FIELDS§harness: {type: oz}\n" })],
    ["the later of the two is named", FACTORY({ defaults: "agentDefaults:\n  harness: {type: oz}\n  §FF_CONFLICTING_FIELDS§model: auto\n" })],
    ["neither model nor harness", FACTORY({ defaults: "§FF_MISSING_FIELD§agentDefaults: {}\n" })],
    ["harness without type", FACTORY({ defaults: "agentDefaults:\n  §FF_MISSING_FIELD§harness: {model: x}\n" })],
    ["built-in harness takes no auth", FACTORY({ defaults: "agentDefaults:\n  harness: {type: oz, §FF_CONFLICTING_FIELDS§reasoningLevel: high, §FF_CONFLICTING_FIELDS§auth: {source: managedSecret, secretName: K}}\n" })],
    ["managed secret without name", FACTORY({ defaults: "agentDefaults:\n  harness: {type: codex, §FF_MISSING_FIELD§auth: {source: managedSecret}}\n" })],
    ["worker environment on the hosted worker", FACTORY({ defaults: "agentDefaults:\n  harness: {type: codex, auth: {source: §FF_CONFLICTING_FIELDS§workerEnvironment}}\n  workerHost: warp\n" })],
    ["unknown runner", FACTORY({ defaults: "agentDefaults: {model: auto, runner: §FF_INVALID_REFERENCE§box}\n" })],
    ["scorer runner", FACTORY({ tail: "scorerDefaults: {runner: §FF_INVALID_REFERENCE§box}\n" })],
    ["reviewer e-mails need custom", FACTORY({ tail: "selfImprovement:\n  reviewerType: team\n  failedRunThreshold: §FF_INVALID_VALUE§51\n  §FF_CONFLICTING_FIELDS§reviewerEmails: [a@b.c]\n" })],
  ])("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });
});

describe("YAML that is refused", () => {
  test.each([
    ["duplicate key", FACTORY({ tail: "alias: a\n§FF_DUPLICATE_KEY§alias: b\n" })],
    ["duplicate key deep down", FACTORY({ defaults: "agentDefaults:\n  model: auto\n  §FF_DUPLICATE_KEY§model: auto\n" })],
    ["anchor and alias", FACTORY({ tail: "alias: §FF_FORBIDDEN_YAML§&a x\ndescription: §FF_FORBIDDEN_YAML§*a\n" })],
    ["anchor on a mapping", FACTORY({ defaults: "agentDefaults: §FF_FORBIDDEN_YAML§&d\n  model: auto\n" })],
    ["tags", FACTORY({ tail: "alias: §FF_FORBIDDEN_YAML§!!str x\ndescription: §FF_FORBIDDEN_YAML§!own y\n" })],
    ["merge key is an ordinary, unknown one", FACTORY({ tail: "§FF_UNKNOWN_FIELD§<<: {}\n" })],
    ["directive that would change the schema", { "factory.yaml": "§FF_FORBIDDEN_YAML§%YAML 1.1\n---\nschemaVersion: v1alpha1\nname: yes\nrepositories: []\nagentDefaults: {model: auto}\n" }],
    ["second document", { "factory.yaml": "a: 1\n§FF_PARSE_ERROR§---\nb: 1\n" }],
    ["broken flow", { "factory.yaml": "a: [1, 2\n§FF_PARSE_ERROR§b: 1\n" }],
    ["key that is no text", FACTORY({ tail: "§FF_UNKNOWN_FIELD§1: x\n" })],
  ])("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });

  test("words of YAML 1.1 stay text", () => {
    const { definition } = parseDefinition(filesOf({ ...VALID, ...FACTORY({ tail: "alias: on\ndescription: off\nsecrets: [yes, no]\n" }) }));
    expect(definition?.factory).toMatchObject({ alias: "on", description: "off", secrets: ["yes", "no"] });
  });

  test("nesting beyond the stack is an answer, not a crash", () => {
    const { diagnostics } = parseDefinition(filesOf({ ...VALID, "factory.yaml": `a: ${"[".repeat(100_000)}` }));
    expect(diagnostics[0]).toMatchObject({ path: "factory.yaml", code: "FF_PARSE_ERROR" });
  });
});

describe("agents", () => {
  test.each([
    ["unknown field", AGENT("§FF_UNKNOWN_FIELD§prompt: x")],
    ["unknown type", AGENT("agentType: §FF_INVALID_VALUE§foreman")],
    ["empty body", { "agents/worker/agent.md": "§FF_MISSING_FIELD§---\ndescription: x\n---\n \n" }],
    ["no frontmatter", { "agents/worker/agent.md": "§FF_PARSE_ERROR§# Hello\n" }],
    ["frontmatter without end", { "agents/worker/agent.md": "§FF_PARSE_ERROR§---\na: 1\n" }],
    ["broken frontmatter", AGENT("description: a\nmodel: §FF_PARSE_ERROR§@x")],
    ["windows line ends", { "agents/worker/agent.md": "---\r\ndescription: x\r\n§FF_UNKNOWN_FIELD§colour: red\r\n---\r\nDo.\r\n" }],
    ["unknown runner", AGENT("runner: §FF_INVALID_REFERENCE§Box")],
    ["model and harness", AGENT("model: a\n§FF_CONFLICTING_FIELDS§harness: {type: claude-code}")],
    ["worker environment without a host", AGENT("harness: {type: claude, auth: {source: §FF_CONFLICTING_FIELDS§workerEnvironment}}")],
    ["a name with capitals", { "agents/Worker/agent.md": "§FF_INVALID_VALUE§---\n---\nDo.\n" }],
    ["an unknown file", { ...AGENT("description: x"), "agents/worker/agent.yaml": "§FF_UNKNOWN_FILE§a: 1\n" }],
    ["a file in place of a directory", { "agents/worker": "§FF_UNKNOWN_FILE§x" }],
    ["two foremen", {
      "agents/foreman/agent.md": "---\nagentType: §FF_FOREMAN_COUNT§FOREMAN\n---\nA\n",
      "agents/worker/agent.md": "---\nagentType: §FF_FOREMAN_COUNT§MAIN\n---\nB\n",
    }],
  ])("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });

  test("no foreman, no agent, no agent.md, no factory.yaml: each is said once", () => {
    const codes = (tree: Record<string, string>) => errorsOf(filesOf(tree)).map(({ path, code }) => `${path} ${code}`);
    const factory = { "factory.yaml": VALID["factory.yaml"] ?? "" };
    expect(codes({ ...factory, "agents/a/agent.md": "---\n---\nx" })).toEqual(["factory.yaml FF_FOREMAN_COUNT"]);
    expect(codes(factory)).toEqual(["agents FF_MISSING_FILE"]);
    expect(codes({ ...VALID, "agents/a/skills/s/SKILL.md": "x" })).toEqual(["agents/a/agent.md FF_MISSING_FILE"]);
    expect(codes({})).toEqual(["agents FF_MISSING_FILE", "factory.yaml FF_MISSING_FILE"]);
  });

  test("an inherited harness must fit the worker an agent chooses", () => {
    const defaults = "agentDefaults:\n  harness: {type: codex, auth: {source: workerEnvironment}}\n  workerHost: own-box\n";
    for (const frontmatter of ["workerHost: §FF_CONFLICTING_FIELDS§service", "workerHost: warp\nmodel: auto"]) {
      const { found, expected } = check({ ...FACTORY({ defaults }), ...AGENT(frontmatter) });
      expect(found).toEqual(expected);
    }
  });
});

describe("runners", () => {
  const linux = "platform: {linux: {dockerImage: debian}}\n";
  test.each([
    ["no platform", RUNNER("§FF_MISSING_FIELD§description: x\n")],
    ["no image", RUNNER("platform:\n  §FF_MISSING_FIELD§linux: {}\n")],
    ["no linux block", RUNNER("§FF_MISSING_FIELD§platform: {os: linux}\n")],
    ["mac block on linux", RUNNER("platform:\n  linux: {dockerImage: x}\n  §FF_CONFLICTING_FIELDS§mac: {version: '26'}\n")],
    ["linux block on macos", RUNNER("platform:\n  os: macos\n  §FF_CONFLICTING_FIELDS§linux: {dockerImage: x}\n")],
    ["intel on macos", RUNNER("platform: {os: macos, arch: §FF_INVALID_VALUE§x86_64}\n")],
    ["mac version unquoted", RUNNER("platform: {os: macos, mac: {version: §FF_INVALID_TYPE§26}}\n")],
    ["mac version unknown", RUNNER("platform: {os: macos, mac: {version: §FF_INVALID_VALUE§'13'}}\n")],
    ["half a shape", RUNNER(`${linux}§FF_MISSING_FIELD§instanceShape: {vcpus: 2}\n`)],
    ["no powers of two", RUNNER(`${linux}instanceShape: {vcpus: §FF_INVALID_VALUE§3, memoryGb: §FF_INVALID_VALUE§5}\n`)],
    ["mac shape", RUNNER("platform: {os: macos}\ninstanceShape: {vcpus: §FF_INVALID_VALUE§4, memoryGb: 8}\n")],
    ["long description", RUNNER(`${linux}description: §FF_INVALID_VALUE§${"x".repeat(241)}\n`)],
    ["commands are a list of texts", RUNNER(`${linux}setupCommands: [ls, §FF_INVALID_TYPE§1]\n`)],
    ["yml", { "runners/box.yml": "§FF_UNKNOWN_FILE§x: 1\n" }],
    ["deeper", { "runners/box/a.yaml": "§FF_UNKNOWN_FILE§x: 1\n" }],
  ])("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });

  test.each(["4/7", "6/14", "8/14", "12/28", "12/56"])("macOS has the shape %s", (shape) => {
    const [vcpus, memory] = shape.split("/");
    expect(check(RUNNER(`platform: {os: macos}\ninstanceShape: {vcpus: ${vcpus}, memoryGb: ${memory}}\n`)).found).toEqual([]);
  });
});

describe("what this version does not serve", () => {
  const trigger = "---\ntriggers:\n  - {provider: schedule, event: cron_fired}\n---\nGo.\n";
  test("is read for form and answered with a warning", () => {
    const files = filesOf({ ...VALID, "automations/nightly/automation.md": trigger, "webhooks/ci.yaml": "secretName: K\n", "benchmarks/core/tasks/one.yaml": "title: x\n" });
    const { definition, diagnostics } = parseDefinition(files);
    expect(definition).toBeDefined();
    expect(diagnostics.map(({ path, code, severity }) => [path, code, severity])).toEqual([
      ["automations/nightly/automation.md", "FF_NOT_SERVED", "warning"],
      ["benchmarks/core/tasks/one.yaml", "FF_NOT_SERVED", "warning"],
      ["webhooks/ci.yaml", "FF_NOT_SERVED", "warning"],
    ]);
  });
  test.each([
    ["duplicate key in a webhook", { "webhooks/ci.yaml": "enabled: true\n§FF_DUPLICATE_KEY§enabled: false\n" }],
    ["unknown place", { "scorers/style/rubric.md": "§FF_UNKNOWN_FILE§x" }],
    ["bad slug", { "benchmarks/Core/suite.yaml": "§FF_INVALID_VALUE§name: x\n" }],
  ])("%s is an error all the same", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });
});
