import type { ReadAgent } from "./agent-file.ts";
import type { ReadAutomation } from "./automation-file.ts";
import type { ReadSuite, ReadTask } from "./benchmark-files.ts";
import { HOSTED_WORKER } from "./definition.ts";
import { compareText, START, type Problems } from "./diagnostics.ts";
import type { ReadBlock } from "./execution-block.ts";
import type { ReadFactory } from "./factory-file.ts";
import type { Placed } from "./fields.ts";
import { titlesFault, WEBHOOKS_MAX } from "./rules.ts";
import type { ReadScorer } from "./scorer-file.ts";

export type ReadTree = {
  factory: ReadFactory | undefined;
  agents: readonly ReadAgent[];
  automations: readonly ReadAutomation[];
  scorers: readonly ReadScorer[];
  suites: readonly ReadSuite[];
  tasks: readonly ReadTask[];
  webhookCount: number;
  suiteFiles: ReadonlySet<string>;
  /** Files of tasks, including unreadable ones. */
  taskFiles: readonly { readonly suite: string; readonly name: string }[];
  /** Names of all agent directories, including those without a readable agent.md. */
  agentNames: ReadonlySet<string>;
  /** Names of agent directories that contain an agent.md. */
  agentFiles: ReadonlySet<string>;
  runnerNames: ReadonlySet<string>;
  hasFactoryFile: boolean;
};

const FACTORY = "factory.yaml";

/** Checks the rules across files. */
export function checkTree(tree: ReadTree, problems: Problems): void {
  if (!tree.hasFactoryFile) problems.error(FACTORY, START, "FF_MISSING_FILE", "A definition needs a factory.yaml.");
  for (const name of tree.agentNames) {
    if (!tree.agentFiles.has(name))
      problems.error(`agents/${name}/agent.md`, START, "FF_MISSING_FILE", `The agent ${name} needs an agent.md.`);
  }
  if (tree.agentNames.size === 0)
    problems.error("agents", START, "FF_MISSING_FILE", "A definition needs at least one agent.");
  else checkForeman(tree, problems);
  checkRunners(tree, problems);
  checkAgents(tree, problems);
  checkWorkerAuth(tree, problems);
  checkNames(tree.scorers, problems);
  checkNames(tree.suites, problems);
  checkBenchmarks(tree, problems);
  if (tree.webhookCount > WEBHOOKS_MAX)
    problems.error(
      FACTORY,
      START,
      "FF_LIMIT_EXCEEDED",
      `A factory has at most ${WEBHOOKS_MAX} webhooks; these are ${tree.webhookCount}.`,
    );
}

function checkForeman({ agents, agentFiles }: ReadTree, problems: Problems): void {
  const foremen = agents.filter(({ part }) => part.agent_type === "FOREMAN");
  const isAllRead = agents.length === agentFiles.size; // the foreman may be among the unreadable ones
  if (foremen.length === 0 && isAllRead)
    problems.error(FACTORY, START, "FF_FOREMAN_COUNT", "Exactly one agent must have the agentType FOREMAN; none has.");
  if (foremen.length < 2) return;
  const names = foremen
    .map(({ part }) => part.name)
    .toSorted(compareText)
    .join(", ");
  for (const { path, typeAt } of foremen)
    problems.error(
      path,
      typeAt,
      "FF_FOREMAN_COUNT",
      `Exactly one agent must have the agentType FOREMAN; these have: ${names}.`,
    );
}

function checkRunners({ factory, agents, automations, suites, runnerNames }: ReadTree, problems: Problems): void {
  const check = (path: string, runner: Placed<string> | undefined) => {
    if (!runner || runnerNames.has(runner.value)) return;
    problems.error(path, runner.at, "FF_INVALID_REFERENCE", `There is no file runners/${runner.value}.yaml.`);
  };
  check(FACTORY, factory?.defaults.runner);
  check(FACTORY, factory?.scorerRunner);
  for (const { path, read } of [...agents, ...automations]) check(path, read.runner);
  for (const { path, runners } of suites) for (const runner of runners) check(path, runner);
}

/** Checks every reference to an agent. */
function checkAgents({ automations, scorers, suites, agentFiles }: ReadTree, problems: Problems): void {
  const check = (path: string, agent: Placed<string> | undefined) => {
    if (agent && !agentFiles.has(agent.value))
      problems.error(path, agent.at, "FF_INVALID_REFERENCE", `There is no agent ${agent.value}.`);
  };
  for (const { path, agent } of [...automations, ...suites]) check(path, agent);
  for (const { path, agents } of scorers) for (const agent of agents) check(path, agent);
}

type Named = { readonly path: string; readonly nameAt: Placed<string> };

/** Names are compared without case, as in the API. */
function checkNames(resources: readonly Named[], problems: Problems): void {
  const owners = new Map<string, string>();
  for (const { path, nameAt } of resources.toSorted((a, b) => compareText(a.path, b.path))) {
    const name = nameAt.value.trim().toLowerCase();
    const owner = owners.get(name);
    if (owner === undefined) owners.set(name, path);
    else problems.error(path, nameAt.at, "FF_DUPLICATE_NAME", `The name ${nameAt.value} is already that of ${owner}.`);
  }
}

/** A suite must list its task files, and their titles must be unique. */
function checkBenchmarks({ suites, tasks: readTasks, suiteFiles, taskFiles }: ReadTree, problems: Problems): void {
  for (const { path, part, tasks } of suites) {
    const titles = new Map(
      readTasks.filter(({ suite }) => suite === part.slug).map((task) => [task.part.slug, task.part.title.trim()]),
    );
    const fault = titlesFault(tasks.flatMap(({ value }) => titles.get(value) || []));
    if (fault !== undefined) problems.error(path, tasks[0]!.at, "FF_INVALID_VALUE", fault);
    const files = taskFiles.filter(({ suite }) => suite === part.slug).map(({ name }) => name);
    for (const { value, at } of tasks)
      if (!files.includes(value))
        problems.error(path, at, "FF_INVALID_REFERENCE", `There is no file tasks/${value}.yaml.`);
    const listed = new Set(tasks.map(({ value }) => value));
    for (const name of files)
      if (!listed.has(name))
        problems.error(
          `benchmarks/${part.slug}/tasks/${name}.yaml`,
          START,
          "FF_INVALID_REFERENCE",
          `The suite ${part.slug} does not list the task ${name}.`,
        );
  }
  for (const suite of new Set(taskFiles.map((task) => task.suite))) {
    if (!suiteFiles.has(suite))
      problems.error(
        `benchmarks/${suite}/suite.yaml`,
        START,
        "FF_MISSING_FILE",
        `The suite ${suite} needs a suite.yaml.`,
      );
  }
}

type Level = { readonly path: string; readonly read: ReadBlock };

/**
 * Credentials from the worker's environment require a self-hosted worker, after all levels of
 * an agent or an automation are merged. The fault is reported once, where the later of the two settings was made.
 */
function checkWorkerAuth({ factory, agents, automations }: ReadTree, problems: Problems): void {
  const defaults: Level[] = factory ? [{ path: FACTORY, read: factory.defaults }] : [];
  const wrong = new Set<string>();
  const check = (levels: readonly Level[]): void => {
    const harnessAt = levels.findIndex(
      ({ read: { block } }) => block.model !== undefined || block.harness !== undefined,
    );
    const hostAt = levels.findIndex(({ read }) => read.workerHost);
    const [auth, host] = [levels[harnessAt]?.read.workerAuth, levels[hostAt]?.read.workerHost];
    if (!auth || (host && host.value !== HOSTED_WORKER)) return;
    const [level, { at }] = host && hostAt < harnessAt ? [hostAt, host] : [harnessAt, auth];
    const { path } = levels[level]!;
    if (!wrong.has(path))
      problems.error(
        path,
        at,
        "FF_CONFLICTING_FIELDS",
        "Credentials from the worker's environment need a self-hosted workerHost.",
      );
    wrong.add(path);
  };
  for (const agent of agents) check([agent, ...defaults]);
  for (const automation of automations) {
    const { part } = automation;
    const agent = agents.find((candidate) =>
      part.agent === undefined ? candidate.part.agent_type === "FOREMAN" : candidate.part.name === part.agent,
    );
    check([automation, ...(agent ? [agent] : []), ...defaults]);
  }
}
