import { VALID } from "./marked-tree.ts";

const FACTORY = VALID["factory.yaml"]!;
const lead = (frontmatter: string) => ({
  "agents/foreman/agent.md": `---\nagentType: MAIN\n${frontmatter}---\nLead.\n`,
});
const factory = (more: string) => ({ "factory.yaml": FACTORY + more });
const when = (triggers: string) => ({ "automations/on/automation.md": `---\ntriggers:\n${triggers}---\nGo.\n` });
const event = (provider: string, name: string, filter = "") =>
  `  - provider: ${provider}\n    event: ${name}\n${filter && `    filter: ${filter}\n`}`;
const cron = (expression: string, name = "") =>
  `  - provider: schedule\n    event: cron_fired\n    schedule:\n      cron: ${expression}\n${name && `      name: ${name}\n`}`;
const runner = (text: string) => ({ "runners/box.yaml": text });
const scorer = (labels: string, more: string, body = "Judge.") => ({
  "scorers/tests/scorer.md": `---\nagents: [foreman]\nlabels: ${labels}\n${more}model: m\n---\n${body}\n`,
});
const PASS_FAIL = "[{ value: pass, score: 1 }, { value: fail, score: 0 }]";

type Case = readonly [what: string, files: Readonly<Record<string, string>>];

/** Valid files of the published format that replace or complete those of the smallest tree. */
export const ACCEPTED: readonly Case[] = [
  ["the smallest tree", {}],
  ["an agent whose frontmatter is empty", { "agents/aide/agent.md": "---\n---\nHelp.\n" }],
  [
    "a harness with everything",
    lead(
      "harness:\n  type: claude\n  model: opus\n  reasoningLevel: high\n  auth:\n    source: managedSecret\n    secretName: KEY\n",
    ),
  ],
  ["the long name of a harness", lead("harness: { type: claude-code, model: opus }\n")],
  ["credentials of a harness taken away", lead("harness: { type: codex, model: gpt-5.5, auth: null }\n")],
  ["a harness that inherits its model", lead("harness: { type: claude, model: null, auth: null }\n")],
  ["the built-in harness by its name", lead("harness: { type: oz, model: auto }\n")],
  [
    "a harness as the default",
    { "factory.yaml": FACTORY.replace("model: auto", "harness: { type: claude, model: opus }") },
  ],
  [
    "overrides that inherit by null",
    {
      ...factory("credentialStrategy: null\ndescription: null\nalias: null\n"),
      ...lead("description: null\nmodel: null\ncredentialStrategy: null\nrunner: null\nenvironmentId: null\n"),
    },
  ],
  ["a worker host taken away", lead("workerHost: null\n")],
  ["a worker host taken away by nothing", lead('workerHost: ""\n')],
  ["a named schedule", when(cron("0 3 * * *", "nightly"))],
  ["a schedule by descriptor", when(cron("'@daily'"))],
  ["a schedule with names of months and days", when(cron("0 3 1 JAN MON-FRI"))],
  [
    "a matcher that excludes",
    when(event("github", "pull_request_opened", "{ labels: { in: [ready], not_in: [wip] }, pr_numbers: [12, 13] }")),
  ],
  [
    "matchers without constraints",
    when(
      event("github", "pull_request_opened", "{ labels: {}, authors: null }") +
        event("teams", "app_mention", "{ team_ids: [t], channel_ids: [c], keywords: null }"),
    ),
  ],
  [
    "labels that differ in case where case counts",
    when(event("jira", "issue_labeled", "{ labels: { in: [Bug], not_in: [bug] } }")),
  ],
  [
    "labels of a Jira agent session",
    when(event("jira", "agent_session_created", "{ project_keys: [ENG], labels: [triage], keywords: [urgent] }")),
  ],
  [
    "merge requests and stages",
    when(
      event("gitlab", "merge_request", "{ repos: [acme/shop], actions: [open] }") +
        event("factory", "work_item_stage_changed", "{ stages: [REVIEW] }"),
    ),
  ],
  ["any review", when(event("github", "pull_request_review_submitted"))],
  [
    "Linear by its identifiers and by names",
    when(
      event("linear", "issue_labeled", "{ team_ids: [5fd6d41f-3a36-4d3c-a4c7-1dbe5e5e5e5e], labels: [go] }") +
        event("linear", "issue_state_changed", "{ teams: [Team], states: [Done] }"),
    ),
  ],
  [
    "channels by identifier and by name",
    when(
      event("slack", "reaction_added", "{ channels: [intake], emojis: [ticket] }") +
        event("slack", "message_posted", "{ channel_ids: [C1], keywords: [help] }"),
    ),
  ],
  [
    "a machine of macOS",
    runner(
      'platform:\n  os: macos\n  arch: aarch64\n  mac: { version: "15" }\ninstanceShape: { vcpus: 6, memoryGb: 14 }\n',
    ),
  ],
  ["a machine of macOS of no version", runner("platform: { os: macos, arch: aarch64 }\n")],
  ["a machine that is Linux by default", runner("platform: { linux: { dockerImage: ubuntu:22.04 } }\n")],
  ["no integrations", factory("integrations: []\n")],
  ["cloud providers by their old name too", factory("providers: { aws: { roleArn: 'arn:aws:iam::1:role/old' } }\n")],
  [
    "cloud providers by both names",
    factory(
      "cloudProviders: { aws: { roleArn: 'arn:aws:iam::1:role/new' } }\nproviders: { aws: { roleArn: 'arn:aws:iam::1:role/old' } }\n",
    ),
  ],
  ["the code hosts of a factory", factory("codeForges: [GITHUB]\n")],
  ["an alias with everything it may have", factory("alias: Demo Factory-1.0_x\n")],
  [
    "text in every YAML style",
    {
      "factory.yaml":
        '# first\nschemaVersion: v1alpha1 # same line\nname: "shop: the factory"\ndescription: |\n  It\'s *here*\n  ---\n  A & B\nrepositories:\n  - owner: acme\n    name: shop\nagentDefaults:\n  model: auto\n',
    },
  ],
  ["a scorer", scorer(PASS_FAIL, "passingScore: 1\nsamplingRate: 25\nselfImprovement: true\n")],
  ["a scorer that names its form", scorer(PASS_FAIL, "passingScore: 1\noutput: classification\nenabled: false\n")],
  [
    "skills with only a name",
    { "agents/foreman/skills/x/SKILL.md": "---\nname: x\n---\n", "skills/y/SKILL.md": "---\nname: y\n---\n" },
  ],
];

/** Files that every implementation of the format rejects. */
export const REFUSED: readonly Case[] = [
  ["model and harness at once", lead("model: auto\nharness: { type: oz, model: auto }\n")],
  ["defaults of neither", { "factory.yaml": FACTORY.replace("model: auto", "runner: box") }],
  [
    "a secret with the worker's own credentials",
    lead("workerHost: w\nharness: { type: claude, model: opus, auth: { source: workerEnvironment, secretName: K } }\n"),
  ],
  [
    "a managed secret without its name",
    lead("harness: { type: claude, model: opus, auth: { source: managedSecret } }\n"),
  ],
  ["an empty harness", lead("harness: {}\n")],
  ["an empty model of a harness", lead("harness: { type: claude, model: '' }\n")],
  ["an alias with a slash", factory("alias: demo/factory\n")],
  ["an alias with a picture", factory("alias: factory🚀\n")],
  ["an alias of 61 letters", factory(`alias: ' ${"a".repeat(61)} '\n`)],
  ["two foremen", { "agents/other/agent.md": "---\nagentType: FOREMAN\n---\nx\n" }],
  ["no foreman", { "agents/foreman/agent.md": "---\nagentType: REVIEW\n---\nx\n" }],
  ["an agent type that is none", { "agents/other/agent.md": "---\nagentType: BOSS\n---\nx\n" }],
  [
    "an automation of an unknown agent",
    { "automations/on/automation.md": `---\nagent: none\ntriggers:\n${event("github", "push")}---\nGo.\n` },
  ],
  ["a schedule of another event", when(`${event("github", "push")}    schedule: { cron: 0 3 * * * }\n`)],
  [
    "two sources of a schedule",
    when(`${event("schedule", "cron_fired", "{ schedule_ids: [s] }")}    schedule: { cron: 0 3 * * * }\n`),
  ],
  ["no source of a schedule", when(event("schedule", "cron_fired"))],
  ["a cron with seconds", when(cron("0 0 3 * * *"))],
  ["a cron with a time zone", when(cron("CRON_TZ=UTC 0 3 * * *"))],
  ["a cron out of range", when(cron("99 25 32 13 8"))],
  ["a cron of no duration", when(cron("'@every someday'"))],
  ["two schedules of a name", when(cron("0 1 * * *", "same") + cron("0 2 * * *", "same"))],
  ["an automation without triggers", { "automations/on/automation.md": "---\nenabled: true\n---\nGo.\n" }],
  ["an automation of no trigger", { "automations/on/automation.md": "---\ntriggers: []\n---\nGo.\n" }],
  ["another version", { "factory.yaml": FACTORY.replace("v1alpha1", "v1beta1") }],
  ["Linux without an image", runner("platform: { os: linux, arch: x86_64 }\n")],
  ["a machine of no platform", runner("description: none\n")],
  [
    "a shape that is not a power of two",
    runner("instanceShape: { vcpus: 3, memoryGb: 8 }\nplatform: { linux: { dockerImage: u } }\n"),
  ],
  ["half a shape", runner("instanceShape: { vcpus: 4 }\nplatform: { linux: { dockerImage: u } }\n")],
  ["macOS with a Linux image", runner("platform: { os: macos, linux: { dockerImage: u } }\n")],
  ["an agent too deep", { "agents/team/extra/agent.md": "---\n---\nx\n" }],
  ["an anchor", { "factory.yaml": FACTORY.replace("- owner", "- &it\n    owner") }],
  ["a tag", lead("runner: !!str box\n")],
  [
    "a value both included and excluded",
    when(event("github", "pull_request_opened", "{ labels: { in: [ready], not_in: [ready] } }")),
  ],
  [
    "a duplicate repository with surrounding spaces",
    { "factory.yaml": FACTORY.replace("repositories:", "repositories:\n  - owner: ' acme '\n    name: shop") },
  ],
  ["junk after a quote", factory('description: "quoted" junk\n')],
  ["a scorer without a rubric", scorer(PASS_FAIL, "passingScore: 1\n", "")],
  [
    "a scorer that passes every label",
    scorer("[{ value: pass, score: 1 }, { value: better, score: 0.9 }]", "passingScore: 0.5\n"),
  ],
  [
    "a scorer of an unknown agent",
    {
      "scorers/tests/scorer.md": `---\nagents: [none]\nlabels: ${PASS_FAIL}\npassingScore: 1\nmodel: m\n---\nJudge.\n`,
    },
  ],
  [
    "a scorer in the wrong place",
    { "scorers/flat.md": `---\nagents: [foreman]\nlabels: ${PASS_FAIL}\npassingScore: 1\nmodel: m\n---\nJudge.\n` },
  ],
];
