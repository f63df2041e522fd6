import { describe, expect, test } from "@jest/globals";
import { parseStored } from "@millwright/payload-filter";
import { deferredResolutions, parseAutomation, parseDefinition, type AutomationText } from "../src/index.ts";
import {
  AUTOMATION,
  AUTOMATION_FAULTS,
  JUDGING_FAULTS,
  LABELS,
  PAYLOAD,
  SCORER,
  SUITE,
  TASK,
  WEBHOOK,
  WEBHOOK_FAULTS,
} from "./faults.ts";
import { errorsOf, filesOf, unmark, VALID } from "./marked-tree.ts";

const check = (marked: Record<string, string>) => {
  const { files, expected } = unmark({ ...VALID, ...marked });
  return { found: errorsOf(files), expected };
};
describe("automations: reports every fault at its position", () => {
  test.each(AUTOMATION_FAULTS)("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });
});

describe("webhooks: reports every fault at its position", () => {
  test.each(WEBHOOK_FAULTS)("%s", (_name, files) => {
    const { found, expected } = check(files);
    expect(found).toEqual(expected);
  });
});

describe("scorers and benchmarks: reports every fault at its position", () => {
  test.each(JUDGING_FAULTS)("%s", (name, marked) => {
    const { files, expected } = unmark({ ...VALID, ...marked });
    const given =
      name === "tasks without a suite" ? files.filter(({ path }) => path !== "benchmarks/basics/suite.yaml") : files;
    expect(errorsOf(given)).toEqual(expected);
  });
});

test("valid files are stored in normalised form", () => {
  const { definition, diagnostics } = parseDefinition(
    filesOf({
      ...VALID,
      ...AUTOMATION(
        "agent: foreman\nmodel: auto\ntriggers:\n  - provider: webhook\n    event: received\n    filter: {webhook_ids: [w], payload: {event: [done], repo: {private: [false]}}}\n  - provider: schedule\n    event: cron_fired\n    schedule: {cron: '@every 1h', name: hourly}\n  - provider: github\n    event: push\n    filter: {repos: {not_in: [a/b]}, branches: [main]}",
      ),
      ...WEBHOOK("authMode: signature\nsignatureScheme: stripe\nsecretName: S\nenabled: false\n"),
      ...SCORER(`agents: [foreman]\n${LABELS}\npassingScore: 0.5\nmodel: auto`),
      ...SUITE("name: Basics\nagent: foreman\ntasks: [two, one]\n", {
        one: TASK,
        two: TASK.replace("title: t", "title: other"),
      }),
    }),
  );
  expect(diagnostics.filter(({ severity }) => severity === "error")).toEqual([]);
  expect(definition).toMatchObject({
    automations: [
      {
        name: "nightly",
        enabled: true,
        agent: "foreman",
        model: "auto",
        prompt: "Do it.",
        triggers: [
          {
            provider: "webhook",
            event: "received",
            filter: { webhook_ids: { in: ["w"] } },
            payload: { event: ["done"], repo: { private: [false] } },
          },
          { provider: "schedule", event: "cron_fired", filter: {}, schedule: { cron: "@every 1h", name: "hourly" } },
          { provider: "github", event: "push", filter: { repos: { not_in: ["a/b"] }, branches: { in: ["main"] } } },
        ],
      },
    ],
    webhooks: [{ name: "in", auth_mode: "signature", signature_scheme: "stripe", secret_name: "S", enabled: false }],
    scorers: [
      {
        slug: "tidy",
        name: "tidy",
        agents: ["foreman"],
        passing_score: 0.5,
        sampling_rate: 25,
        model: "auto",
        self_improvement: false,
        prompt: "Judge it.",
      },
    ],
    benchmarks: [
      {
        slug: "basics",
        name: "Basics",
        agent: "foreman",
        tasks: [{ slug: "two" }, { slug: "one", title: "t", prompt: "p", success_criteria: "s" }],
      },
    ],
  });
});

describe("numbers of a payload filter that a float would change", () => {
  const NUMBER = "12345678901234567890";
  const STORED = { a: [{ $decimal: NUMBER }] };
  const parseApi = (payload: string) =>
    parseAutomation(
      "alerts",
      parseStored(
        `{"prompt":"p","triggers":[{"provider":"webhook","event":"received","filter":{"webhook_ids":["w"],"payload":${payload}}}]}`,
      ) as AutomationText,
    );

  test("are stored exactly, from files and from the API", () => {
    const { definition } = parseDefinition(filesOf({ ...VALID, ...PAYLOAD(`{a: [${NUMBER}]}`) }));
    expect(definition!.automations[0]!.triggers[0]!.payload).toEqual(STORED);
    expect(parseApi(`{"a":[${NUMBER}]}`).automation!.triggers[0]!.payload).toEqual(STORED);
  });

  test("cannot be written in their stored form", () =>
    expect(parseApi(JSON.stringify(STORED)).faults).toMatchObject([{ code: "FF_INVALID_FILTER" }]));
});

test("names that only a connected service knows are deferred until the definition is applied", () => {
  const triggers = [
    "{provider: linear, event: issue_created, filter: {teams: [Core], keywords: [x]}}",
    "{provider: github, event: push, filter: {repos: [a/b]}}",
    "{provider: slack, event: app_mention, filter: {channels: {not_in: [general]}}}",
  ];
  const { definition } = parseDefinition(filesOf({ ...VALID, ...AUTOMATION(`triggers: [${triggers.join(", ")}]`) }));
  const path = "automations/nightly/automation.md";
  expect(deferredResolutions(definition!)).toEqual([
    { path, field: "triggers[0].filter.teams", kind: "linear_name_alias" },
    { path, field: "triggers[2].filter.channels", kind: "slack_name_alias" },
  ]);
});
