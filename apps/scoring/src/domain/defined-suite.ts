import type { BenchmarkPart, BenchmarkTaskPart } from "@millwright/definition";
import { invalidArgument } from "@millwright/errors";
import { newUid, NIL_UUID, runnerUidOf } from "@millwright/ids";
import { checkConfigurations, type GivenConfiguration } from "./configuration-rules.ts";
import { checkSuite, checkTask } from "./suite-rules.ts";
import type { RepoRef, SuiteSettings, SuiteTask, SuiteTaskUid, SuiteWithTasks, TaskContent } from "./suite.ts";

/**
 * Returns the benchmark suites of a normalised definition. The sender has validated the definition, so a wrong form is
 * an error of the sender.
 *
 * Errors: definition_malformed (invalid_argument).
 */
export function readDefinedSuites(definition: Readonly<Record<string, unknown>>): BenchmarkPart[] {
  const parts = definition["benchmarks"] ?? []; // absent in definitions of early versions
  if (!Array.isArray(parts)) throw malformed();
  return parts.map((part: unknown) => {
    const { slug, name, agent, tasks } = (part ?? {}) as Partial<BenchmarkPart>;
    const isTask = (task: BenchmarkTaskPart): boolean =>
      [task.slug, task.title, task.prompt, task.success_criteria].every((text) => typeof text === "string");
    if (![slug, name, agent].every((text) => typeof text === "string") || !Array.isArray(tasks) || !tasks.every(isTask))
      throw malformed();
    return part as BenchmarkPart;
  });
}

/** Placeholder for an agent that is disabled. A suite with it cannot be launched. */
export const NO_AGENT = NIL_UUID;

/**
 * Returns the settings of a defined suite. A configuration retains the uid of the earlier configuration at the same
 * position. Errors: suite_invalid.
 */
export function suiteSettingsOf(
  part: BenchmarkPart,
  factoryUid: string,
  agentUid: string,
  before?: SuiteWithTasks,
): SuiteSettings {
  const { name, description } = checkSuite({ name: part.name, description: part.description ?? null, agentUid });
  const earlier = before?.configurations ?? [];
  const given = (part.configurations ?? []).map((configuration, index): GivenConfiguration => {
    const { role, display_name: displayName = "", model, harness, runner } = configuration;
    const uid = earlier[index]?.uid;
    return {
      uid,
      role,
      display_name: displayName,
      harness: harness?.type ?? "",
      model: model ?? harness?.model ?? "",
      runner_uid: runner === undefined ? "" : runnerUidOf(factoryUid, runner),
      harness_auth_secret_name: harness?.auth?.source === "managedSecret" ? harness.auth.secret_name : null,
      agent_configs: [],
    };
  });
  return {
    name,
    description,
    agentUid,
    factoryAgentType: part.agent,
    configurations: checkConfigurations(given, earlier, newUid),
  };
}

/** Returns a task as its file describes it. Errors: suite_invalid. */
export const taskContentOf = (task: BenchmarkTaskPart): TaskContent =>
  checkTask({
    title: task.title,
    prompt: task.prompt,
    successCriteria: task.success_criteria,
    sourceRunUid: task.source_run_id ?? null,
    startingRepoRefs: (task.starting_repo_refs ?? []).map(repoRefOf),
    tags: task.tags ?? [],
    labels: {},
    rule: null,
  });

/**
 * Returns the tasks of a defined suite. A task retains its uid and number as long as its file exists. Errors:
 * suite_invalid.
 */
export const suiteTasksOf = (part: BenchmarkPart, before?: SuiteWithTasks): SuiteTask[] =>
  part.tasks.map((task) => {
    const known = before?.tasks.find(({ slug }) => slug === task.slug);
    return { ...taskContentOf(task), uid: known?.uid ?? newUid<SuiteTaskUid>(), id: known?.id ?? 0, slug: task.slug };
  });

/** Parses `github.com:OWNER/REPO@COMMIT`. The definition parser has validated the form. */
function repoRefOf(text: string): RepoRef {
  const [, host = "", path = "", ref = ""] = /^([a-z]+)\.com:(.+)@([0-9a-f]{40})$/.exec(text) ?? [];
  const slash = path.lastIndexOf("/");
  return { code_forge: host, owner: path.slice(0, slash), repo: path.slice(slash + 1), ref };
}

const malformed = (): Error =>
  invalidArgument("definition_malformed", "The definition's benchmarks have an invalid form.");
