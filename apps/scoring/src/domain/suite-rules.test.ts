import { describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { checkConfigurations, type GivenConfiguration } from "./configuration-rules.ts";
import { checkSuite, checkTask, checkTasks, isSameTask, SUITE_LIMITS } from "./suite-rules.ts";
import type { TaskContent } from "./suite.ts";

const TASK: TaskContent = {
  title: "Fix it",
  prompt: "Fix the bug.",
  successCriteria: "Tests pass.",
  sourceRunUid: null,
  startingRepoRefs: [],
  tags: [],
  labels: {},
  rule: null,
};
const REF = { code_forge: "github", owner: "acme", repo: "shop", ref: "main" };
const GIVEN: GivenConfiguration = {
  role: "candidate",
  display_name: "",
  harness: "",
  model: "m",
  runner_uid: "",
  harness_auth_secret_name: null,
  agent_configs: [],
};
const refused = (field: string) =>
  expect.objectContaining({ kind: "invalid_argument", reason: "suite_invalid", metadata: { field } });

describe("a task", () => {
  test("is trimmed", () =>
    expect(
      checkTask({
        ...TASK,
        title: " Fix it ",
        tags: [" a ", "a"],
        startingRepoRefs: [{ ...REF, code_forge: " GitHub", ref: `${"A".repeat(40)} ` }],
      }),
    ).toEqual({
      ...TASK,
      tags: ["a"],
      startingRepoRefs: [{ ...REF, ref: "a".repeat(40) }],
    }));

  test.each<[string, Partial<TaskContent>, string]>([
    ["a blank title", { title: " " }, "title"],
    ["a blank prompt", { prompt: "\n" }, "prompt"],
    ["blank success criteria", { successCriteria: "" }, "success_criteria"],
    ["a long title", { title: "x".repeat(SUITE_LIMITS.title + 1) }, "title"],
    ["a source run that is no UUID", { sourceRunUid: "run-1" }, "source_run_id"],
    ["an unknown code forge", { startingRepoRefs: [{ ...REF, code_forge: "svn" }] }, "starting_repo_refs"],
    ["a repository without owner", { startingRepoRefs: [{ ...REF, owner: "" }] }, "starting_repo_refs"],
    [
      "a ref that git would read as an option",
      { startingRepoRefs: [{ ...REF, ref: "--upload-pack=x" }] },
      "starting_repo_refs",
    ],
    ["one repository twice", { startingRepoRefs: [REF, { ...REF, owner: "ACME", ref: "dev" }] }, "starting_repo_refs"],
    ["too many tags", { tags: Array.from({ length: SUITE_LIMITS.tags + 1 }, (_, index) => `t${index}`) }, "tags"],
  ])("is refused with %s", (_, change, field) =>
    expect(() => checkTask({ ...TASK, ...change })).toThrow(refused(field)),
  );

  test.each<[string, Partial<TaskContent>]>([
    ["prompt", { prompt: "other" }],
    ["success_criteria", { successCriteria: "other" }],
    ["source_run_id", { sourceRunUid: newUid() }],
    ["starting_repo_refs", { startingRepoRefs: [REF] }],
    ["tags", { tags: ["a"] }],
    ["rule", { rule: { checks: [{ kind: "state", in: ["SUCCEEDED"] }], pass: "pass", fail: "fail" } }],
  ])("is another one with another %s", (_, change) => {
    expect(isSameTask(TASK, { ...TASK, labels: {} })).toBe(true);
    expect(isSameTask(TASK, { ...TASK, ...change })).toBe(false);
  });
});

test("a suite has a limit on all its text", () => {
  const large = { ...TASK, prompt: "x".repeat(SUITE_LIMITS.prompt) };
  const tasks = Array.from({ length: SUITE_LIMITS.text / SUITE_LIMITS.prompt + 1 }, (_, index) => ({
    ...large,
    title: `t${index}`,
  }));
  expect(() => checkTasks(tasks)).toThrow(refused("tasks"));
});

test("two tasks of a suite cannot have one title", () =>
  expect(() => checkTasks([TASK, { ...TASK, prompt: "other" }])).toThrow(refused("tasks")));

test("a suite needs a name and an agent", () => {
  const suite = { name: " Core ", description: " ", agentUid: newUid().toUpperCase() };
  expect(checkSuite(suite)).toEqual({ name: "Core", description: null, agentUid: suite.agentUid.toLowerCase() });
  expect(() => checkSuite({ ...suite, name: "  " })).toThrow(refused("name"));
  expect(() => checkSuite({ ...suite, agentUid: "foreman" })).toThrow(refused("agent_uid"));
});

describe("configurations", () => {
  const [existing] = checkConfigurations([GIVEN], [], newUid);

  test("retain their uid and number when they name an existing one; new ones get the next number", () =>
    expect(
      checkConfigurations(
        [
          { ...GIVEN, model: "other" },
          { ...GIVEN, uid: existing!.uid.toUpperCase(), model: "n" },
        ],
        [existing!],
        () => "new",
      ),
    ).toMatchObject([
      { uid: "new", id: 2, model: "other" },
      { uid: existing!.uid, id: 1, model: "n" },
    ]));

  const agent = newUid();
  const override = { agent_uid: agent, harness: "", model: "m", agent_name: "", harness_auth_secret_name: null };
  test.each<[string, GivenConfiguration[]]>([
    [
      "two baselines",
      [
        { ...GIVEN, role: "baseline" },
        { ...GIVEN, role: "baseline" },
      ],
    ],
    ["an unknown role", [{ ...GIVEN, role: "control" }]],
    ["an unknown uid", [{ ...GIVEN, uid: newUid() }]],
    [
      "one uid twice",
      [
        { ...GIVEN, uid: existing!.uid },
        { ...GIVEN, uid: existing!.uid },
      ],
    ],
    ["one agent twice", [{ ...GIVEN, agent_configs: [override, { ...override, agent_uid: agent.toUpperCase() }] }]],
    ["an agent that is no UUID", [{ ...GIVEN, agent_configs: [{ ...override, agent_uid: "foreman" }] }]],
    ["more than the limit", Array.from({ length: SUITE_LIMITS.configurations + 1 }, () => GIVEN)],
  ])("are refused with %s", (_, given) =>
    expect(() => checkConfigurations(given, [existing!], newUid)).toThrow(refused("configurations")),
  );
});
