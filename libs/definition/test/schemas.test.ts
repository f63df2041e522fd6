import { expect, test } from "@jest/globals";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parse } from "yaml";
import { SCHEMA_DOCUMENTS } from "../src/index.ts";
import { classify } from "../src/layout.ts";
import {
  AGENT_FAULTS,
  AUTOMATION,
  AUTOMATION_FAULTS,
  FACTORY_FAULTS,
  JUDGING_FAULTS,
  LABELS,
  RUNNER_FAULTS,
  SCORER,
  SUITE,
  TASK,
  WEBHOOK,
  WEBHOOK_FAULTS,
} from "./faults.ts";
import { errorsOf, filesOf, unmark, VALID } from "./marked-tree.ts";
import { ACCEPTED } from "./published-format.ts";

const ajv = new Ajv2020({ allErrors: true, strict: false });
for (const schema of Object.values(SCHEMA_DOCUMENTS)) ajv.addSchema(schema);

const DOCUMENT: Readonly<Record<string, string>> = { suite: "benchmark_suite", "suite task": "benchmark_suite_task" };

/** Returns what an editor with the schemas reports for a file; undefined for a file without a schema. */
function faultsOf(path: string, content: string): string[] | undefined {
  const { kind } = classify(path);
  const check = ajv.getSchema(`${DOCUMENT[kind] ?? kind}.schema.json`);
  if (!check) return undefined;
  const text = path.endsWith(".md") ? (content.split(/^---\r?$/m)[1] ?? "") : content;
  void check(parse(text, { schema: "core", uniqueKeys: false }) ?? {});
  return (check.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** Faults that a schema can find in a single value. */
const SCHEMA_CODES: ReadonlySet<string> = new Set([
  "FF_UNKNOWN_FIELD",
  "FF_MISSING_FIELD",
  "FF_INVALID_TYPE",
  "FF_INVALID_VALUE",
  "FF_CONFLICTING_FIELDS",
  "FF_UNKNOWN_EVENT",
  "FF_INVALID_FILTER",
  "FF_UNSUPPORTED_VERSION",
]);

/**
 * Faults that only the parser finds: relations between values, names, the text after the frontmatter, or characters.
 */
const BEYOND: ReadonlySet<string> = new Set([
  ...[
    "characters that cannot be stored",
    "linear and jira",
    "worker environment on the hosted worker",
    "worker environment without a host",
    "worker's credentials on the hosted worker",
  ],
  ...[
    "empty body",
    "no text",
    "a name with capitals",
    "name",
    "all labels pass",
    "payload: the same value in and not in",
    "payload: numbers that are not finite",
    "payload: keys that JSON would spell otherwise",
    "header that carries a credential",
    "the same title twice in a suite",
    "two baselines",
  ],
]);

const faulty = [
  ...FACTORY_FAULTS,
  ...AGENT_FAULTS,
  ...RUNNER_FAULTS,
  ...AUTOMATION_FAULTS,
  ...WEBHOOK_FAULTS,
  ...JUDGING_FAULTS,
].flatMap(([name, marked]) => {
  const { files, expected } = unmark(marked);
  const reported = new Set(expected.filter(({ code }) => SCHEMA_CODES.has(code)).map(({ path }) => path));
  return BEYOND.has(name)
    ? []
    : files
        .filter(({ path }) => reported.has(path))
        .map(({ path, content }) => ({ name, path, content: content as string }));
});

test.each(faulty)("$name is rejected by the schema of $path, too", ({ path, content }) => {
  expect(faultsOf(path, content)).not.toEqual([]);
});

test("the schemas accept what the parser accepts", () => {
  const tree = {
    ...VALID,
    ...WEBHOOK("authMode: signature\nsignatureScheme: stripe\nsecretName: S\nenabled: false\ndeliveryIdHeader: X-Id\n"),
    ...SCORER(
      `agents: [foreman]\n${LABELS}\npassingScore: 0.5\nsamplingRate: 12.5\nmodel: auto\noutput: classification`,
    ),
    ...SUITE("name: Basics\nagent: foreman\ntasks: [one]\nconfigurations: [{role: base, harness: {type: codex}}]\n", {
      one: `${TASK}startingRepoRefs: ['github.com:a/b@${"0".repeat(40)}']\n`,
    }),
    ...AUTOMATION(
      [
        "harness: {type: claude, reasoningLevel: high, auth: {source: managedSecret, secretName: K}}\nmcpServers: {docs: {managedId: x}}\ntriggers:",
        "- {provider: github, event: push, filter: {repos: {not_in: [a/b]}, branches: [main], paths: []}}",
        "- {provider: github, event: pull_request_review_submitted, filter: {review_states: [approved], labels: {in: [a], not_in: [b]}}}",
        "- {provider: webhook, event: received, filter: {webhook_ids: {in: [w]}, payload: {a: [1, x, null, true], b: {exists: true, not_in: [y]}, c: {d: {e: []}}, f: {}}}}",
        "- {provider: teams, event: app_mention, filter: {team_ids: [t], channel_ids: {in: [c]}}}",
        "- {provider: schedule, event: cron_fired, schedule: {cron: '@every 1h', name: n}}",
        "- {provider: factory, event: work_item_stage_changed}",
      ].join("\n"),
    ),
    "runners/mac.yaml": "platform: {os: macos, mac: {version: '26'}}\ninstanceShape: {vcpus: 12, memoryGb: 28}\n",
    "runners/box.yaml":
      "setupCommands: [ls]\nplatform: {arch: aarch64, linux: {dockerImage: x}}\ninstanceShape: {vcpus: 4, memoryGb: 16}\n",
  };
  expect(errorsOf(filesOf(tree))).toEqual([]);
  const reported = Object.entries(tree).map(([path, content]) => [path, faultsOf(path, content)]);
  expect(reported).toEqual(Object.keys(tree).map((path) => [path, []]));
});

test.each(ACCEPTED)("the schemas accept %s", (_, files) => {
  expect(Object.entries(files).flatMap(([path, content]) => faultsOf(path, content) ?? [])).toEqual([]);
});

test("a document's id is its file name, and its references are in the bundle", () => {
  for (const [name, schema] of Object.entries(SCHEMA_DOCUMENTS)) {
    expect(schema).toMatchObject({ $schema: "https://json-schema.org/draft/2020-12/schema", $id: name });
    expect(ajv.getSchema(name)).toBeInstanceOf(Function);
  }
  expect(Object.keys(SCHEMA_DOCUMENTS)).toEqual(
    expect.arrayContaining(
      ["common", "factory", "agent", "automation", "runner", "scorer"].map((name) => `${name}.schema.json`),
    ),
  );
});
