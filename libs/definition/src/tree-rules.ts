import type { ReadAgent } from "./agent-file.ts";
import { HOSTED_WORKER } from "./definition.ts";
import { compareText, START, type Problems } from "./diagnostics.ts";
import type { ReadBlock } from "./execution-block.ts";
import type { ReadFactory } from "./factory-file.ts";
import type { Placed } from "./fields.ts";

export type ReadTree = {
  factory: ReadFactory | undefined;
  agents: readonly ReadAgent[];
  /** Names of every agent directory, also of those without a readable agent.md. */
  agentNames: ReadonlySet<string>;
  /** Names of agent directories that hold an agent.md. */
  agentFiles: ReadonlySet<string>;
  runnerNames: ReadonlySet<string>;
  hasFactoryFile: boolean;
};

const FACTORY = "factory.yaml";

/** The rules that look at more than one file. */
export function checkTree(tree: ReadTree, problems: Problems): void {
  if (!tree.hasFactoryFile) problems.error(FACTORY, START, "FF_MISSING_FILE", "A definition needs a factory.yaml.");
  for (const name of tree.agentNames) {
    if (!tree.agentFiles.has(name)) problems.error(`agents/${name}/agent.md`, START, "FF_MISSING_FILE", `The agent ${name} needs an agent.md.`);
  }
  if (tree.agentNames.size === 0) problems.error("agents", START, "FF_MISSING_FILE", "A definition needs at least one agent.");
  else checkForeman(tree, problems);
  checkRunners(tree, problems);
  checkWorkerAuth(tree, problems);
}

function checkForeman({ agents, agentFiles }: ReadTree, problems: Problems): void {
  const foremen = agents.filter(({ part }) => part.agent_type === "FOREMAN");
  const isAllRead = agents.length === agentFiles.size; // an unreadable one may be the foreman
  if (foremen.length === 0 && isAllRead) problems.error(FACTORY, START, "FF_FOREMAN_COUNT", "Exactly one agent must have the agentType FOREMAN; none has.");
  if (foremen.length < 2) return;
  const names = foremen.map(({ part }) => part.name).toSorted(compareText).join(", ");
  for (const { path, typeAt } of foremen) problems.error(path, typeAt, "FF_FOREMAN_COUNT", `Exactly one agent must have the agentType FOREMAN; these have: ${names}.`);
}

function checkRunners({ factory, agents, runnerNames }: ReadTree, problems: Problems): void {
  const check = (path: string, runner: Placed<string> | undefined) => {
    if (!runner || runnerNames.has(runner.value)) return;
    problems.error(path, runner.at, "FF_INVALID_REFERENCE", `There is no file runners/${runner.value}.yaml.`);
  };
  check(FACTORY, factory?.defaults.runner);
  check(FACTORY, factory?.scorerRunner);
  for (const { path, read } of agents) check(path, read.runner);
}

/** Credentials from the worker's environment exist on self-hosted workers only (spec factory-files §4). */
function checkWorkerAuth({ factory, agents }: ReadTree, problems: Problems): void {
  const message = "Credentials from the worker's environment need a self-hosted workerHost.";
  const isHosted = (block: ReadBlock | undefined) => block?.workerHost === undefined || block.workerHost.value === HOSTED_WORKER;
  const defaults = factory?.defaults;
  const isDefaultWrong = defaults?.workerAuth !== undefined && isHosted(defaults);
  if (defaults?.workerAuth && isDefaultWrong) problems.error(FACTORY, defaults.workerAuth.at, "FF_CONFLICTING_FIELDS", message);
  for (const { path, part, read } of agents) {
    const isInherited = part.model === undefined && part.harness === undefined;
    const auth = isInherited ? defaults?.workerAuth : read.workerAuth;
    if (!auth || !isHosted(read.workerHost ? read : defaults)) continue;
    if (read.workerAuth) problems.error(path, read.workerAuth.at, "FF_CONFLICTING_FIELDS", message);
    else if (read.workerHost) problems.error(path, read.workerHost.at, "FF_CONFLICTING_FIELDS", message);
  }
}
