import { VALID } from "./marked-tree.ts";

/** A name, and files to lay over a valid tree; the positions of their faults are marked. */
type Faults = readonly (readonly [name: string, marked: Readonly<Record<string, string>>])[];

export const FACTORY = (changes: { head?: string; tail?: string; repositories?: string; defaults?: string }) => ({
  "factory.yaml": [
    changes.head ?? "schemaVersion: v1alpha1\nname: Sample\n",
    changes.repositories ?? "repositories: []\n",
    changes.defaults ?? "agentDefaults: { model: auto }\n",
    changes.tail ?? "",
  ].join(""),
});
export const AGENT = (frontmatter: string, body = "Do it.") => ({
  "agents/worker/agent.md": `---\n${frontmatter}\n---\n${body}\n`,
});
export const RUNNER = (text: string) => ({ "runners/box.yaml": text });
export const AUTOMATION = (frontmatter: string, body = "Do it.") => ({
  "automations/nightly/automation.md": `---\n${frontmatter}\n---\n${body}\n`,
});
export const TRIGGER = (trigger: string) => AUTOMATION(`triggers:\n  - ${trigger.replaceAll("\n", "\n    ")}`);
export const PAYLOAD = (payload: string) =>
  TRIGGER(`provider: webhook\nevent: received\nfilter:\n  webhook_ids: [w]\n  payload: ${payload}`);
export const WEBHOOK = (text: string) => ({ "webhooks/in.yaml": text });
export const SCORER = (frontmatter: string, body = "Judge it.") => ({
  "scorers/tidy/scorer.md": `---\n${frontmatter}\n---\n${body}\n`,
});
export const LABELS = "labels: [{value: good, score: 1}, {value: bad, score: 0}]";
export const SUITE = (text: string, tasks: Record<string, string> = {}) => ({
  "benchmarks/basics/suite.yaml": text,
  ...Object.fromEntries(Object.entries(tasks).map(([name, task]) => [`benchmarks/basics/tasks/${name}.yaml`, task])),
});
export const TASK = "title: t\nprompt: p\nsuccessCriteria: s\n";
const LINUX = "platform: {linux: {dockerImage: debian}}\n";

export const FACTORY_FAULTS: Faults = [
  ["unknown field", FACTORY({ tail: "§FF_UNKNOWN_FIELD§colour: red\n" })],
  ["keys are case-sensitive", FACTORY({ tail: "§FF_UNKNOWN_FIELD§Alias: x\n" })],
  [
    "all required keys",
    { "factory.yaml": "§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§alias: x\n" },
  ],
  [
    "empty document",
    { "factory.yaml": "§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§# nothing\n" },
  ],
  ["not a mapping", { "factory.yaml": "\n§FF_INVALID_TYPE§- a\n" }],
  ["other schema version", FACTORY({ head: "schemaVersion: §FF_UNSUPPORTED_VERSION§v2\nname: x\n" })],
  ["number as text", FACTORY({ head: "schemaVersion: v1alpha1\nname: §FF_INVALID_TYPE§12\n" })],
  ["blank name", FACTORY({ head: "schemaVersion: v1alpha1\nname: §FF_INVALID_VALUE§'  '\n" })],
  [
    "characters that cannot be stored",
    FACTORY({
      tail: 'alias: §FF_INVALID_VALUE§"a\\0"\ndescription: §FF_INVALID_VALUE§"\\uD800"\nmcpServers: {§FF_INVALID_VALUE§"\\0": {warpId: x}}\n',
    }),
  ],
  ["long name", FACTORY({ head: `schemaVersion: v1alpha1\nname: §FF_INVALID_VALUE§${"n".repeat(101)}\n` })],
  ["key without value", FACTORY({ tail: "§FF_INVALID_TYPE§secrets:\n" })],
  ["alias with a slash", FACTORY({ tail: "alias: §FF_INVALID_VALUE§a/b\n" })],
  ["credential strategy", FACTORY({ tail: "credentialStrategy: §FF_INVALID_VALUE§executor\n" })],
  ["repositories not a list", FACTORY({ repositories: "repositories: §FF_INVALID_TYPE§{}\n" })],
  ["repository without name", FACTORY({ repositories: "repositories:\n  - §FF_MISSING_FIELD§owner: a\n" })],
  [
    "repository twice, in other case",
    FACTORY({ repositories: "repositories:\n  - {owner: a, name: b}\n  - §FF_DUPLICATE_NAME§{owner: A, name: B}\n" }),
  ],
  [
    "repository that walks up",
    FACTORY({ repositories: "repositories:\n  - {owner: §FF_INVALID_VALUE§a/.., name: §FF_INVALID_VALUE§..}\n" }),
  ],
  [
    "unknown forge",
    FACTORY({ repositories: "repositories: [{owner: a, name: b, codeForge: §FF_INVALID_VALUE§SVN}]\n" }),
  ],
  ["secrets contain a number", FACTORY({ tail: "secrets: [A, §FF_INVALID_TYPE§5]\n" })],
  ["managed server without reference", FACTORY({ tail: "mcpServers:\n  §FF_MISSING_FIELD§docs: {}\n" })],
  [
    "managed server with a command",
    FACTORY({ tail: "mcpServers:\n  docs: {warpId: x, §FF_UNKNOWN_FIELD§command: sh}\n" }),
  ],
  ["both reference keys", FACTORY({ tail: "mcpServers:\n  docs: {warpId: x, §FF_CONFLICTING_FIELDS§managedId: x}\n" })],
  [
    "unquoted project number",
    FACTORY({
      tail: "cloudProviders:\n  §FF_MISSING_FIELD§§FF_MISSING_FIELD§gcp: {projectNumber: §FF_INVALID_TYPE§12}\n",
    }),
  ],
  ["aws without role", FACTORY({ tail: "cloudProviders:\n  §FF_MISSING_FIELD§aws: {}\n" })],
  ["github is no integration", FACTORY({ tail: "integrations:\n  - type: §FF_INVALID_VALUE§github\n" })],
  ["integration twice", FACTORY({ tail: "integrations:\n  - type: slack\n  - type: §FF_DUPLICATE_NAME§slack\n" })],
  ["linear and jira", FACTORY({ tail: "integrations:\n  - type: jira\n  - type: §FF_CONFLICTING_FIELDS§linear\n" })],
  [
    "settings of another type",
    FACTORY({ tail: "integrations:\n  - type: slack\n    §FF_CONFLICTING_FIELDS§jira: {projectKeys: [A]}\n" }),
  ],
  [
    "settings that do not exist",
    FACTORY({ tail: "integrations:\n  - type: slack\n    slack: {§FF_UNKNOWN_FIELD§teamIds: []}\n" }),
  ],
  [
    "model and harness",
    FACTORY({ defaults: "agentDefaults:\n  model: auto\n  §FF_CONFLICTING_FIELDS§harness: {type: oz}\n" }),
  ],
  [
    "the later of the two is named",
    FACTORY({ defaults: "agentDefaults:\n  harness: {type: oz}\n  §FF_CONFLICTING_FIELDS§model: auto\n" }),
  ],
  ["neither model nor harness", FACTORY({ defaults: "§FF_MISSING_FIELD§agentDefaults: {}\n" })],
  ["blank worker host", FACTORY({ defaults: "agentDefaults:\n  model: auto\n  workerHost: §FF_INVALID_VALUE§'  '\n" })],
  ["harness without type", FACTORY({ defaults: "agentDefaults:\n  §FF_MISSING_FIELD§harness: {model: x}\n" })],
  [
    "built-in harness takes no auth",
    FACTORY({
      defaults:
        "agentDefaults:\n  harness: {type: oz, §FF_CONFLICTING_FIELDS§reasoningLevel: high, §FF_CONFLICTING_FIELDS§auth: {source: managedSecret, secretName: K}}\n",
    }),
  ],
  [
    "managed secret without name",
    FACTORY({
      defaults: "agentDefaults:\n  harness: {type: codex, §FF_MISSING_FIELD§auth: {source: managedSecret}}\n",
    }),
  ],
  [
    "worker environment on the hosted worker",
    FACTORY({
      defaults:
        "agentDefaults:\n  harness: {type: codex, auth: {source: §FF_CONFLICTING_FIELDS§workerEnvironment}}\n  workerHost: warp\n",
    }),
  ],
  ["unknown runner", FACTORY({ defaults: "agentDefaults: {model: auto, runner: §FF_INVALID_REFERENCE§box}\n" })],
  ["scorer runner", FACTORY({ tail: "scorerDefaults: {runner: §FF_INVALID_REFERENCE§box}\n" })],
  [
    "reviewer e-mails need custom",
    FACTORY({
      tail: "selfImprovement:\n  reviewerType: team\n  failedRunThreshold: §FF_INVALID_VALUE§51\n  §FF_CONFLICTING_FIELDS§reviewerEmails: [a@b.c]\n",
    }),
  ],
];

export const AGENT_FAULTS: Faults = [
  ["unknown field", AGENT("§FF_UNKNOWN_FIELD§prompt: x")],
  ["unknown type", AGENT("agentType: §FF_INVALID_VALUE§foreman")],
  ["empty body", { "agents/worker/agent.md": "§FF_MISSING_FIELD§---\ndescription: x\n---\n \n" }],
  ["no frontmatter", { "agents/worker/agent.md": "§FF_PARSE_ERROR§# Hello\n" }],
  ["frontmatter without end", { "agents/worker/agent.md": "§FF_PARSE_ERROR§---\na: 1\n" }],
  ["broken frontmatter", AGENT("description: a\nmodel: §FF_PARSE_ERROR§@x")],
  [
    "windows line ends",
    { "agents/worker/agent.md": "---\r\ndescription: x\r\n§FF_UNKNOWN_FIELD§colour: red\r\n---\r\nDo.\r\n" },
  ],
  ["unknown runner", AGENT("runner: §FF_INVALID_REFERENCE§Box")],
  ["model and harness", AGENT("model: a\n§FF_CONFLICTING_FIELDS§harness: {type: claude-code}")],
  [
    "worker environment without a host",
    AGENT("harness: {type: claude, auth: {source: §FF_CONFLICTING_FIELDS§workerEnvironment}}"),
  ],
  ["a name with capitals", { "agents/Worker/agent.md": "§FF_INVALID_VALUE§---\n---\nDo.\n" }],
  ["an unknown file", { ...AGENT("description: x"), "agents/worker/agent.yaml": "§FF_UNKNOWN_FILE§a: 1\n" }],
  ["a file in place of a directory", { "agents/worker": "§FF_UNKNOWN_FILE§x" }],
  [
    "two foremen",
    {
      "agents/foreman/agent.md": "---\nagentType: §FF_FOREMAN_COUNT§FOREMAN\n---\nA\n",
      "agents/worker/agent.md": "---\nagentType: §FF_FOREMAN_COUNT§MAIN\n---\nB\n",
    },
  ],
];

export const RUNNER_FAULTS: Faults = [
  ["no platform", RUNNER("§FF_MISSING_FIELD§description: x\n")],
  ["no image", RUNNER("platform:\n  §FF_MISSING_FIELD§linux: {}\n")],
  ["no linux block", RUNNER("§FF_MISSING_FIELD§platform: {os: linux}\n")],
  [
    "mac block on linux",
    RUNNER("platform:\n  linux: {dockerImage: x}\n  §FF_CONFLICTING_FIELDS§mac: {version: '26'}\n"),
  ],
  ["linux block on macos", RUNNER("platform:\n  os: macos\n  §FF_CONFLICTING_FIELDS§linux: {dockerImage: x}\n")],
  ["intel on macos", RUNNER("platform: {os: macos, arch: §FF_INVALID_VALUE§x86_64}\n")],
  ["mac version unquoted", RUNNER("platform: {os: macos, mac: {version: §FF_INVALID_TYPE§26}}\n")],
  ["mac version unknown", RUNNER("platform: {os: macos, mac: {version: §FF_INVALID_VALUE§'13'}}\n")],
  ["half a shape", RUNNER(`${LINUX}§FF_MISSING_FIELD§instanceShape: {vcpus: 2}\n`)],
  ["no powers of two", RUNNER(`${LINUX}instanceShape: {vcpus: §FF_INVALID_VALUE§3, memoryGb: §FF_INVALID_VALUE§5}\n`)],
  ["mac shape", RUNNER("platform: {os: macos}\ninstanceShape: {vcpus: §FF_INVALID_VALUE§4, memoryGb: 8}\n")],
  ["long description", RUNNER(`${LINUX}description: §FF_INVALID_VALUE§${"x".repeat(241)}\n`)],
  ["commands are a list of texts", RUNNER(`${LINUX}setupCommands: [ls, §FF_INVALID_TYPE§1]\n`)],
  ["yml", { "runners/box.yml": "§FF_UNKNOWN_FILE§x: 1\n" }],
  ["deeper", { "runners/box/a.yaml": "§FF_UNKNOWN_FILE§x: 1\n" }],
];

export const AUTOMATION_FAULTS: Faults = [
  ["no content", { "automations/nightly/automation.md": "§FF_MISSING_FIELD§---\n---\nDo it.\n" }],
  [
    "no text",
    {
      "automations/nightly/automation.md":
        "§FF_MISSING_FIELD§---\ntriggers: [{provider: schedule, event: cron_fired, schedule: {cron: '@daily'}}]\n---\n",
    },
  ],
  ["no trigger", AUTOMATION("triggers: §FF_MISSING_FIELD§[]")],
  ["unknown agent", AUTOMATION("agent: §FF_INVALID_REFERENCE§nobody\ntriggers: [{provider: github, event: push}]")],
  ["unknown runner", AUTOMATION("runner: §FF_INVALID_REFERENCE§box\ntriggers: [{provider: github, event: push}]")],
  ["enabled is no text", AUTOMATION("enabled: §FF_INVALID_TYPE§'yes'\ntriggers: [{provider: github, event: push}]")],
  [
    "model and harness",
    AUTOMATION("model: a\n§FF_CONFLICTING_FIELDS§harness: {type: codex}\ntriggers: [{provider: github, event: push}]"),
  ],
  [
    "worker's credentials on the hosted worker",
    AUTOMATION(
      "harness: {type: codex, auth: {source: §FF_CONFLICTING_FIELDS§workerEnvironment}}\ntriggers: [{provider: github, event: push}]",
    ),
  ],
  ["trigger without provider and event", TRIGGER("§FF_MISSING_FIELD§§FF_MISSING_FIELD§filter: {}")],
  ["unknown provider", TRIGGER("provider: §FF_INVALID_VALUE§svn\nevent: push")],
  ["unknown event", TRIGGER("provider: github\nevent: §FF_UNKNOWN_EVENT§issue_closed")],
  ["unknown filter", TRIGGER("provider: gitlab\nevent: bot_mentioned\nfilter:\n  §FF_INVALID_FILTER§mentioned: [a]")],
  [
    "filter that the event does not have",
    TRIGGER("provider: github\nevent: push\nfilter:\n  §FF_INVALID_FILTER§labels: [a]"),
  ],
  [
    "numbers too large",
    TRIGGER(
      "provider: github\nevent: pull_request_opened\nfilter:\n  pr_numbers: [1, §FF_INVALID_TYPE§9999999999999999]",
    ),
  ],
  [
    "numbers too large, as text",
    TRIGGER(
      "provider: github\nevent: pull_request_opened\nfilter:\n  pr_numbers: [§FF_INVALID_TYPE§'12345678901234567']",
    ),
  ],
  [
    "filter value that is no list",
    TRIGGER("provider: github\nevent: push\nfilter:\n  repos: §FF_INVALID_TYPE§acme/shop"),
  ],
  [
    "repositories without an owner",
    TRIGGER(
      "provider: github\nevent: push\nfilter:\n  repos: [acme/shop, §FF_INVALID_FILTER§noslash, §FF_INVALID_FILTER§a/b/c, §FF_INVALID_FILTER§a/..]",
    ),
  ],
  [
    "projects without a group",
    TRIGGER("provider: gitlab\nevent: merge_request\nfilter:\n  repos: {not_in: [a/b/c, §FF_INVALID_FILTER§noslash]}"),
  ],
  [
    "filter with an unknown operator",
    TRIGGER("provider: github\nevent: push\nfilter:\n  repos: {§FF_UNKNOWN_FIELD§like: [a]}"),
  ],
  [
    "review states that do not exist",
    TRIGGER(
      "provider: github\nevent: pull_request_review_submitted\nfilter:\n  review_states: [§FF_INVALID_FILTER§great, approved, §FF_INVALID_FILTER§awful]",
    ),
  ],
  [
    "stages that do not exist",
    TRIGGER(
      "provider: factory\nevent: work_item_stage_changed\nfilter:\n  stages: [REVIEW, §FF_INVALID_FILTER§DONE]\n  from_stages: {not_in: [§FF_INVALID_FILTER§triage]}",
    ),
  ],
  ["a set that is one text", TRIGGER("provider: github\nevent: push\nfilter:\n  branches: §FF_INVALID_TYPE§main")],
  ["Teams without its ids", TRIGGER("provider: teams\nevent: app_mention\n§FF_INVALID_FILTER§filter: {team_ids: [t]}")],
  [
    "two Teams, and an exclusion",
    TRIGGER(
      "provider: teams\nevent: app_mention\nfilter:\n  team_ids: §FF_INVALID_FILTER§[a, b]\n  channel_ids: §FF_INVALID_FILTER§{§FF_INVALID_FILTER§not_in: [c]}",
    ),
  ],
  ["webhook trigger without a webhook", TRIGGER("§FF_INVALID_FILTER§provider: webhook\nevent: received")],
  [
    "webhook trigger of two",
    TRIGGER("provider: webhook\nevent: received\nfilter:\n  webhook_ids: §FF_INVALID_FILTER§[a, b]"),
  ],
  [
    "payload: numbers that are not finite",
    PAYLOAD("{a: [1, §FF_INVALID_FILTER§.inf, 1e400], b: {in: [§FF_INVALID_FILTER§.nan, 9007199254740993]}}"),
  ],
  [
    "payload: keys that JSON would spell otherwise",
    PAYLOAD(
      "{200: [1], true: [1], §FF_INVALID_TYPE§null: [1], §FF_INVALID_TYPE§0x1F: [1], a: {§FF_INVALID_TYPE§1.0: [1], ? §FF_INVALID_TYPE§[b] : [1]}}",
    ),
  ],
  ["payload: an object in the form of a stored number", PAYLOAD('{a: [§FF_INVALID_FILTER§{$decimal: "5"}]}')],
  ["payload: a bare text", PAYLOAD("{event: §FF_INVALID_FILTER§done}")],
  [
    "payload: deep down, in a name with dots",
    PAYLOAD("\n      a.b:\n        c: {in: [1], exists: true, other: §FF_INVALID_FILTER§[2]}"),
  ],
  ["payload: the same value in and not in", PAYLOAD("{event: §FF_INVALID_FILTER§{in: [a], not_in: [a]}}")],
  ["schedule without one", TRIGGER("§FF_MISSING_FIELD§provider: schedule\nevent: cron_fired")],
  [
    "schedule with six fields",
    TRIGGER("provider: schedule\nevent: cron_fired\nschedule:\n  cron: §FF_INVALID_CRON§0 0 * * * *"),
  ],
  [
    "schedule that never comes",
    TRIGGER("provider: schedule\nevent: cron_fired\nschedule: {cron: §FF_INVALID_CRON§0 0 30 2 *}"),
  ],
  [
    "schedule of another provider",
    TRIGGER("provider: github\nevent: push\n§FF_CONFLICTING_FIELDS§schedule: {cron: '@daily'}"),
  ],
  [
    "misplaced file",
    { ...TRIGGER("provider: github\nevent: push"), "automations/nightly/notes.md": "§FF_UNKNOWN_FILE§x" },
  ],
];

export const WEBHOOK_FAULTS: Faults = [
  ["no secret", WEBHOOK("§FF_MISSING_FIELD§authMode: token\n")],
  ["unknown mode", WEBHOOK("authMode: §FF_INVALID_VALUE§basic\nsecretName: S\n")],
  ["signature without scheme", WEBHOOK("§FF_MISSING_FIELD§authMode: signature\nsecretName: S\n")],
  ["scheme without signature", WEBHOOK("§FF_CONFLICTING_FIELDS§signatureScheme: stripe\nsecretName: S\n")],
  [
    "header that carries a credential",
    WEBHOOK("deliveryIdHeader: §FF_INVALID_VALUE§Stripe-Signature\nsecretName: S\n"),
  ],
  ["no header at all", WEBHOOK("deliveryIdHeader: §FF_INVALID_VALUE§'a b'\nsecretName: S\n")],
  ["name", { "webhooks/In.yaml": "§FF_INVALID_VALUE§secretName: S\n" }],
  [
    "too many",
    {
      ...Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`webhooks/w${n}.yaml`, "secretName: S\n"])),
      "factory.yaml": `§FF_LIMIT_EXCEEDED§${VALID["factory.yaml"]}`,
    },
  ],
];

export const JUDGING_FAULTS: Faults = [
  [
    "scorer without anything",
    {
      "scorers/tidy/scorer.md":
        "§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§§FF_MISSING_FIELD§---\n---\n",
    },
  ],
  [
    "unknown agent, wrong output",
    SCORER(
      `agents: §FF_INVALID_REFERENCE§[nobody]\noutput: §FF_INVALID_VALUE§number\n${LABELS}\npassingScore: 0.5\nmodel: auto`,
    ),
  ],
  [
    "all labels pass",
    SCORER("agents: '*'\nlabels: §FF_INVALID_VALUE§[{value: a, score: 1}]\npassingScore: 0.5\nmodel: auto"),
  ],
  [
    "label twice, score out of bounds",
    SCORER(
      "agents: '*'\nlabels: [{value: a, score: 1}, {value: §FF_DUPLICATE_NAME§a, score: 0}, {value: b, score: §FF_INVALID_VALUE§2}]\npassingScore: 0.5\nmodel: auto",
    ),
  ],
  [
    "sampling beyond all",
    SCORER(`agents: '*'\n${LABELS}\npassingScore: 0.5\nsamplingRate: §FF_INVALID_VALUE§101\nmodel: auto`),
  ],
  ["suite without name and agent", SUITE("§FF_MISSING_FIELD§§FF_MISSING_FIELD§description: d\n")],
  ["listed task without file", SUITE("name: b\nagent: foreman\ntasks: §FF_INVALID_REFERENCE§[one]\n")],
  ["task file that is not listed", SUITE("name: b\nagent: foreman\n", { one: `§FF_INVALID_REFERENCE§${TASK}` })],
  [
    "tasks without a suite",
    { "benchmarks/basics/suite.yaml": "§FF_MISSING_FILE§", ...{ "benchmarks/basics/tasks/one.yaml": TASK } },
  ],
  [
    "task without its texts, commit cut short",
    SUITE("name: b\nagent: foreman\ntasks: [one]\n", {
      one: "§FF_MISSING_FIELD§§FF_MISSING_FIELD§title: t\nstartingRepoRefs: §FF_INVALID_VALUE§['github.com:a/b@0123']\n",
    }),
  ],
  [
    "the same name twice, without case",
    {
      ...SUITE("name: b\nagent: foreman\n"),
      "benchmarks/more/suite.yaml": "name: §FF_DUPLICATE_NAME§'B '\nagent: foreman\n",
    },
  ],
  [
    "the name of another scorer, without case",
    {
      "scorers/first/scorer.md": `---\nname: Same\nagents: '*'\n${LABELS}\npassingScore: 0.5\nmodel: auto\n---\nJudge it.\n`,
      ...SCORER(`name: §FF_DUPLICATE_NAME§SAME\nagents: '*'\n${LABELS}\npassingScore: 0.5\nmodel: auto`),
    },
  ],
  [
    "the same title twice in a suite",
    SUITE("name: b\nagent: foreman\ntasks: §FF_INVALID_VALUE§[one, two, three]\n", {
      one: TASK,
      two: TASK.replace("title: t", "title: other"),
      three: TASK.replace("title: t", "title: ' t'"),
    }),
  ],
  [
    "two baselines",
    SUITE(
      "name: b\nagent: foreman\nconfigurations: §FF_INVALID_VALUE§[{role: baseline, model: a}, {role: baseline, model: b}]\n",
    ),
  ],
  [
    "configuration without role and model",
    SUITE("name: b\nagent: foreman\nconfigurations:\n  - §FF_MISSING_FIELD§§FF_MISSING_FIELD§displayName: d\n"),
  ],
];
