import { describe, expect, test } from "@jest/globals";
import { AGENT, AGENT_FAULTS, FACTORY, FACTORY_FAULTS, RUNNER, RUNNER_FAULTS } from "../test/faults.ts";
import { errorsOf, filesOf, unmark, VALID } from "../test/marked-tree.ts";
import { parseDefinition } from "./parse-definition.ts";

/** Returns the errors found in, and marked in, files that are laid over a valid tree. */
const check = (marked: Record<string, string>) => {
  const { files, expected } = unmark({ ...VALID, ...marked });
  return { found: errorsOf(files), expected };
};

describe("factory.yaml: reports every fault at its position", () => {
  test.each(FACTORY_FAULTS)("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });
});

describe("rejects YAML with", () => {
  test.each([
    ["duplicate key", FACTORY({ tail: "alias: a\n§FF_DUPLICATE_KEY§alias: b\n" })],
    [
      "duplicate key deep down",
      FACTORY({ defaults: "agentDefaults:\n  model: auto\n  §FF_DUPLICATE_KEY§model: auto\n" }),
    ],
    ["anchor and alias", FACTORY({ tail: "alias: §FF_FORBIDDEN_YAML§&a x\ndescription: §FF_FORBIDDEN_YAML§*a\n" })],
    ["anchor on a mapping", FACTORY({ defaults: "agentDefaults: §FF_FORBIDDEN_YAML§&d\n  model: auto\n" })],
    ["tags", FACTORY({ tail: "alias: §FF_FORBIDDEN_YAML§!!str x\ndescription: §FF_FORBIDDEN_YAML§!own y\n" })],
    ["merge key is an ordinary, unknown one", FACTORY({ tail: "§FF_UNKNOWN_FIELD§<<: {}\n" })],
    [
      "directive that would change the schema",
      {
        "factory.yaml":
          "§FF_FORBIDDEN_YAML§%YAML 1.1\n---\nschemaVersion: v1alpha1\nname: yes\nrepositories: []\nagentDefaults: {model: auto}\n",
      },
    ],
    ["second document", { "factory.yaml": "a: 1\n§FF_PARSE_ERROR§---\nb: 1\n" }],
    ["broken flow", { "factory.yaml": "a: [1, 2\n§FF_PARSE_ERROR§b: 1\n" }],
    ["key that is no text", FACTORY({ tail: "§FF_UNKNOWN_FIELD§1: x\n" })],
  ])("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });

  test("values of YAML 1.1 such as yes and on are text", () => {
    const { definition } = parseDefinition(
      filesOf({ ...VALID, ...FACTORY({ tail: "alias: on\ndescription: off\nsecrets: [yes, no]\n" }) }),
    );
    expect(definition?.factory).toMatchObject({ alias: "on", description: "off", secrets: ["yes", "no"] });
  });

  test("deep nesting is reported and does not overflow the stack", () => {
    for (const text of [
      "[".repeat(100_000),
      `${"[".repeat(5_000)}${"]".repeat(5_000)}`,
      `${"{a: ".repeat(5_000)}1${"}".repeat(5_000)}`,
    ]) {
      const { diagnostics } = parseDefinition(filesOf({ ...VALID, "factory.yaml": `a: ${text}` }));
      expect(diagnostics).toEqual([
        {
          path: "factory.yaml",
          line: 1,
          column: 1,
          code: "FF_PARSE_ERROR",
          message: "The document is nested too deeply.",
          severity: "error",
        },
      ]);
    }
  });

  test("a byte order mark does not move positions", () => {
    const { "factory.yaml": text } = FACTORY({ defaults: "agentDefaults: {model: auto}\n" });
    const { diagnostics } = parseDefinition(filesOf({ ...VALID, "factory.yaml": `\uFEFFnope: 1\n${text}` }));
    expect(diagnostics).toMatchObject([{ line: 1, column: 1, code: "FF_UNKNOWN_FIELD" }]);
  });

  test("counts characters like the JSON Schemas", () => {
    const named = (name: string) =>
      errorsOf(
        filesOf({ ...VALID, "factory.yaml": (VALID["factory.yaml"] ?? "").replace(/^name: .*$/m, `name: ${name}`) }),
      );
    expect(named("😀".repeat(100))).toEqual([]);
    expect(named("😀".repeat(101))).toMatchObject([{ code: "FF_INVALID_VALUE" }]);
  });
});

describe("agents", () => {
  test.each(AGENT_FAULTS)("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });

  test("reports a missing foreman, agent, agent.md or factory.yaml once", () => {
    const codes = (tree: Record<string, string>) => errorsOf(filesOf(tree)).map(({ path, code }) => `${path} ${code}`);
    const factory = { "factory.yaml": VALID["factory.yaml"] ?? "" };
    expect(codes({ ...factory, "agents/a/agent.md": "---\n---\nx" })).toEqual(["factory.yaml FF_FOREMAN_COUNT"]);
    expect(codes(factory)).toEqual(["agents FF_MISSING_FILE"]);
    expect(codes({ ...VALID, "agents/a/skills/s/SKILL.md": "x" })).toEqual(["agents/a/agent.md FF_MISSING_FILE"]);
    expect(codes({})).toEqual(["agents FF_MISSING_FILE", "factory.yaml FF_MISSING_FILE"]);
  });

  test("an inherited harness must be compatible with the worker that an agent chooses", () => {
    const defaults =
      "agentDefaults:\n  harness: {type: codex, auth: {source: workerEnvironment}}\n  workerHost: own-box\n";
    for (const frontmatter of ["workerHost: §FF_CONFLICTING_FIELDS§service", "workerHost: warp\nmodel: auto"]) {
      const { found, expected } = check({ ...FACTORY({ defaults }), ...AGENT(frontmatter) });
      expect(found).toEqual(expected);
    }
  });

  describe("whose defaults use credentials from the worker's environment", () => {
    const own = (mark = "") => `agentDefaults:\n  harness: {type: codex, auth: {source: ${mark}workerEnvironment}}\n`;
    const foreman = (line: string) => ({ "agents/foreman/agent.md": `---\nagentType: FOREMAN\n${line}\n---\nLead.\n` });
    const automation = (line: string) => ({
      "automations/nightly/automation.md": `---\n${line}\ntriggers: [{provider: github, event: push}]\n---\nDo.\n`,
    });
    const WRONG = "§FF_CONFLICTING_FIELDS§";
    test.each([
      ["may each name a host of their own", own(), foreman("workerHost: box"), AGENT("workerHost: other")],
      ["may take another model instead", own(), foreman("workerHost: box"), AGENT("model: auto")],
      [
        "may name a self-hosted worker even if the default is hosted",
        `${own()}  workerHost: warp\n`,
        foreman("workerHost: box"),
        AGENT("workerHost: box"),
      ],
      ["are rejected when one uses both defaults", own(WRONG), foreman("workerHost: box"), AGENT("description: x")],
      [
        "are rejected where one names the hosted worker",
        `${own()}  workerHost: box\n`,
        foreman("description: x"),
        AGENT(`workerHost: ${WRONG}warp`),
      ],
    ])("%s", (_name, defaults, ...files) => {
      const { found, expected } = check(Object.assign({}, FACTORY({ defaults }), ...files));
      expect(found).toEqual(expected);
    });

    test("extend to an automation, which may choose another worker", () => {
      const harness = "harness: {type: codex, auth: {source: workerEnvironment}}";
      for (const [agent, line] of [
        [`${harness}\nworkerHost: box`, "enabled: true"],
        [`${harness}\nworkerHost: box`, `workerHost: ${WRONG}service`],
        [`${harness}\nworkerHost: box`, "workerHost: warp\nmodel: auto"],
      ] as const) {
        const { found, expected } = check({ ...foreman(agent), ...automation(line) });
        expect(found).toEqual(expected);
      }
    });
  });
});

describe("runners", () => {
  test.each(RUNNER_FAULTS)("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });

  test.each(["4/7", "6/14", "8/14", "12/28", "12/56"])("macOS has the shape %s", (shape) => {
    const [vcpus, memory] = shape.split("/");
    expect(
      check(RUNNER(`platform: {os: macos}\ninstanceShape: {vcpus: ${vcpus}, memoryGb: ${memory}}\n`)).found,
    ).toEqual([]);
  });
});

describe("features that this version does not support", () => {
  const trigger = "---\ntriggers:\n  - {provider: slack, event: app_mention}\n---\nGo.\n";
  test("are validated and reported as a warning", () => {
    const scorer =
      "---\nagents: [foreman]\nlabels: [{value: a, score: 1}, {value: b, score: 0}]\npassingScore: 0.5\nmodel: m\n---\nIs it good?\n";
    const benchmark = { "benchmarks/core/suite.yaml": "name: x\nagent: foreman\n" };
    const files = filesOf({
      ...VALID,
      "automations/nightly/automation.md": trigger,
      "webhooks/ci.yaml": "secretName: K\n",
      "scorers/style/scorer.md": scorer,
      ...benchmark,
    });
    const { definition, diagnostics } = parseDefinition(files);
    expect(definition).toBeDefined();
    expect(diagnostics.map(({ path, code, severity }) => [path, code, severity])).toEqual([
      ["automations/nightly/automation.md", "FF_NOT_SERVED", "warning"],
    ]);
  });
  test.each([
    [
      "duplicate key in a webhook",
      { "webhooks/ci.yaml": "secretName: K\nenabled: true\n§FF_DUPLICATE_KEY§enabled: false\n" },
    ],
    ["unknown place", { "scorers/style/rubric.md": "§FF_UNKNOWN_FILE§x" }],
    ["bad slug", { "benchmarks/Core/suite.yaml": "§FF_INVALID_VALUE§name: x\nagent: foreman\n" }],
  ])("%s is an error nevertheless", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });
});
