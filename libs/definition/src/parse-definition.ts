import { readAgentFile, type ReadAgent } from "./agent-file.ts";
import { readAutomationFile, type ReadAutomation } from "./automation-file.ts";
import { readSuiteFile, readTaskFile, type ReadSuite, type ReadTask } from "./benchmark-files.ts";
import type { Definition, FactoryPart, RunnerPart, SkillPart, WebhookPart } from "./definition.ts";
import { compareText, Problems, START, type Diagnostic } from "./diagnostics.ts";
import { readFactoryFile, type ReadFactory } from "./factory-file.ts";
import { classify, SEGMENT, type PathKind } from "./layout.ts";
import { readRunnerFile } from "./runner-file.ts";
import { readScorerFile, type ReadScorer } from "./scorer-file.ts";
import { brokenSkill, markDuplicates, readSkillFile, skillsOf } from "./skill-file.ts";
import { readTree, type TextFile, type TreeFile } from "./tree.ts";
import { checkTree, type ReadTree } from "./tree-rules.ts";
import { readWebhookFile } from "./webhook-file.ts";

export type ParsedDefinition = {
  /** Present when no diagnostic is an error. */
  definition?: Definition;
  /**
   * Present if a diagnostic is an error: the readable part, for further checks. It omits the agent and runner names of
   * automations, which are checked here.
   */
  draft?: Definition;
  /** All problems of the tree, by path, line and column. */
  diagnostics: Diagnostic[];
};

type Contents = {
  factory: ReadFactory | undefined;
  agents: ReadAgent[];
  runners: RunnerPart[];
  automations: ReadAutomation[];
  webhooks: WebhookPart[];
  scorers: ReadScorer[];
  suites: ReadSuite[];
  tasks: ReadTask[];
  skills: SkillPart[];
  kinds: PathKind[];
};

/**
 * Parses and validates a definition tree without state: no secret, model or
 * environment is resolved. Depends on the files alone, not on their order. Ignores files outside the layout.
 */
export function parseDefinition(files: readonly TreeFile[]): ParsedDefinition {
  const problems = new Problems();
  const tree = readTree(files, problems);
  if (tree === undefined) return { diagnostics: problems.sorted() };
  const contents: Contents = {
    factory: undefined,
    agents: [],
    runners: [],
    automations: [],
    webhooks: [],
    scorers: [],
    suites: [],
    tasks: [],
    skills: [],
    kinds: [],
  };
  for (const file of tree) readFile(file, contents, problems);
  checkTree(summaryOf(contents), problems);
  const diagnostics = problems.sorted();
  if (problems.hasErrors || !contents.factory)
    return { draft: draftOf(assemble(contents, contents.factory?.part ?? NO_FACTORY)), diagnostics };
  return { definition: assemble(contents, contents.factory.part), diagnostics };
}

const NO_FACTORY: FactoryPart = {
  name: "",
  credential_strategy: "EXECUTOR",
  repositories: [],
  secrets: [],
  mcp_servers: {},
  agent_defaults: {},
};

const draftOf = (read: Definition): Definition => ({
  ...read,
  automations: read.automations.map(({ agent: _agent, runner: _runner, ...automation }) => automation),
  webhooks: read.webhooks.filter(
    (webhook) =>
      webhook.secret_name !== "" && (webhook.auth_mode === "signature") === (webhook.signature_scheme !== undefined),
  ),
});

function readFile(file: TextFile, into: Contents, problems: Problems): void {
  const { path } = file;
  const kind = classify(path);
  into.kinds.push(kind);
  if (kind.kind === "skill") {
    into.skills.push("text" in file ? readSkillFile(kind, path, file.text) : brokenSkill(kind, path, file.fault));
    return;
  }
  if (!("text" in file)) {
    problems.error(path, START, file.code, file.fault);
    return;
  }
  const { text } = file;
  if (kind.kind === "misplaced") problems.error(path, START, "FF_UNKNOWN_FILE", "No file of this name belongs here.");
  if (kind.kind === "factory") into.factory = readFactoryFile(path, text, problems);
  if (!("name" in kind)) return;
  for (const segment of kind.kind === "suite task" ? [kind.suite, kind.name] : [kind.name]) {
    if (!SEGMENT.test(segment))
      problems.error(
        path,
        START,
        "FF_INVALID_VALUE",
        `The name ${JSON.stringify(segment)} must match ${SEGMENT.source}.`,
      );
  }
  readResource(kind, path, text, into, problems);
}

function readResource(
  kind: Exclude<PathKind, { kind: "skill" | "factory" | "misplaced" | "other" }>,
  path: string,
  text: string,
  into: Contents,
  problems: Problems,
): void {
  const { name } = kind;
  const collect = <T>(list: T[], read: T | undefined): void => void (read !== undefined && list.push(read));
  if (kind.kind === "agent") collect(into.agents, readAgentFile(name, path, text, problems));
  else if (kind.kind === "runner") collect(into.runners, readRunnerFile(name, path, text, problems));
  else if (kind.kind === "automation") collect(into.automations, readAutomationFile(name, path, text, problems));
  else if (kind.kind === "webhook") collect(into.webhooks, readWebhookFile(name, path, text, problems));
  else if (kind.kind === "scorer") collect(into.scorers, readScorerFile(name, path, text, problems));
  else if (kind.kind === "suite") collect(into.suites, readSuiteFile(name, path, text, problems));
  else collect(into.tasks, readTaskFile(kind.suite, name, path, text, problems));
}

function summaryOf({ factory, agents, automations, scorers, suites, tasks, kinds }: Contents): ReadTree {
  const agentFiles = namesOf(kinds, "agent");
  const skillOwners = kinds.flatMap((kind) => (kind.kind === "skill" && kind.agent !== undefined ? [kind.agent] : []));
  return {
    factory,
    agents,
    automations,
    scorers,
    suites,
    tasks,
    webhookCount: kinds.filter(({ kind }) => kind === "webhook").length,
    suiteFiles: namesOf(kinds, "suite"),
    taskFiles: kinds.flatMap((kind) => (kind.kind === "suite task" ? [kind] : [])),
    agentFiles,
    agentNames: new Set([...agentFiles, ...skillOwners]),
    runnerNames: namesOf(kinds, "runner"),
    hasFactoryFile: kinds.some(({ kind }) => kind === "factory"),
  };
}

const namesOf = (kinds: readonly PathKind[], of: "agent" | "runner" | "suite"): Set<string> =>
  new Set(kinds.flatMap((kind) => (kind.kind === of ? [kind.name] : [])));

function assemble(
  { agents, runners, automations, webhooks, scorers, suites, tasks, skills: found }: Contents,
  factory: FactoryPart,
): Definition {
  const skills = markDuplicates(found);
  return {
    schema_version: "v1alpha1",
    factory,
    agents: agents.map(({ part }) => ({ ...part, skills: skillsOf(part.name, skills) })).toSorted(byName),
    runners: runners.toSorted(byName),
    automations: automations.map(({ part }) => part).toSorted(byName),
    webhooks: webhooks.toSorted(byName),
    scorers: scorers.map(({ part }) => part).toSorted(bySlug),
    benchmarks: suites.map((suite) => ({ ...suite.part, tasks: tasksOf(suite, tasks) })).toSorted(bySlug),
    skills,
  };
}

const byName = (a: { name: string }, b: { name: string }): number => compareText(a.name, b.name);
const bySlug = (a: { slug: string }, b: { slug: string }): number => compareText(a.slug, b.slug);

const tasksOf = (suite: ReadSuite, tasks: readonly ReadTask[]): ReadTask["part"][] =>
  suite.tasks.flatMap(
    ({ value }) => tasks.find((task) => task.suite === suite.part.slug && task.part.slug === value)?.part ?? [],
  );
