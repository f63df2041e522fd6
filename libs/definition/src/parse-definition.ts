import { readAgentFile, type ReadAgent } from "./agent-file.ts";
import type { Definition, RunnerPart, SkillPart } from "./definition.ts";
import { compareText, Problems, START, type Diagnostic } from "./diagnostics.ts";
import { readFactoryFile, type ReadFactory } from "./factory-file.ts";
import { classify, SEGMENT, type PathKind } from "./layout.ts";
import { parseMarkdown } from "./markdown.ts";
import { readRunnerFile } from "./runner-file.ts";
import { brokenSkill, markDuplicates, readSkillFile, skillsOf } from "./skill-file.ts";
import { readTree, type TextFile, type TreeFile } from "./tree.ts";
import { checkTree, type ReadTree } from "./tree-rules.ts";
import { parseYaml } from "./yaml-document.ts";

export type ParsedDefinition = {
  /** Present when no diagnostic is an error. */
  definition?: Definition;
  /** By path, line, column; all problems of the tree at once. */
  diagnostics: Diagnostic[];
};

type Contents = {
  factory: ReadFactory | undefined;
  agents: ReadAgent[];
  runners: RunnerPart[];
  skills: SkillPart[];
  kinds: PathKind[];
};

/**
 * Parses and validates a definition tree (spec factory-files §2-§5, §8, §12, §13.1) without any state: no secret, model
 * or environment is looked up. Depends on the files alone, not on their order. Files outside the layout are ignored.
 */
export function parseDefinition(files: readonly TreeFile[]): ParsedDefinition {
  const problems = new Problems();
  const tree = readTree(files, problems);
  if (tree === undefined) return { diagnostics: problems.sorted() };
  const contents: Contents = { factory: undefined, agents: [], runners: [], skills: [], kinds: [] };
  for (const file of tree) readFile(file, contents, problems);
  checkTree(summaryOf(contents), problems);
  const diagnostics = problems.sorted();
  return problems.hasErrors || !contents.factory ? { diagnostics } : { definition: assemble(contents, contents.factory), diagnostics };
}

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
  if (kind.kind !== "agent" && kind.kind !== "runner" && kind.kind !== "unserved") return;
  for (const segment of namesIn(path, kind)) {
    if (!SEGMENT.test(segment)) problems.error(path, START, "FF_INVALID_VALUE", `The name ${JSON.stringify(segment)} must match ${SEGMENT.source}.`);
  }
  if (kind.kind === "agent") {
    const agent = readAgentFile(kind.name, path, text, problems);
    if (agent) into.agents.push(agent);
  } else if (kind.kind === "runner") {
    const runner = readRunnerFile(kind.name, path, text, problems);
    if (runner) into.runners.push(runner);
  } else {
    const isReadable = kind.format === "yaml" ? parseYaml(path, text, problems) : parseMarkdown(path, text, problems);
    if (isReadable) problems.warning(path, START, "FF_NOT_SERVED", `This version does not serve a ${kind.resource} yet; the file has no effect.`);
  }
}

/** The segments of a path that name resources. */
const namesIn = (path: string, kind: { kind: string; name: string }): string[] => {
  const isFile = kind.kind === "runner" || path.startsWith("webhooks/");
  return isFile || path.split("/").length === 3 ? [kind.name] : [path.split("/")[1] ?? "", kind.name];
};

function summaryOf({ factory, agents, kinds }: Contents): ReadTree {
  const agentFiles = new Set(kinds.flatMap((kind) => (kind.kind === "agent" ? [kind.name] : [])));
  const skillOwners = kinds.flatMap((kind) => (kind.kind === "skill" && kind.agent !== undefined ? [kind.agent] : []));
  return {
    factory,
    agents,
    agentFiles,
    agentNames: new Set([...agentFiles, ...skillOwners]),
    runnerNames: new Set(kinds.flatMap((kind) => (kind.kind === "runner" ? [kind.name] : []))),
    hasFactoryFile: kinds.some(({ kind }) => kind === "factory"),
  };
}

function assemble({ agents, runners, skills: found }: Contents, factory: ReadFactory): Definition {
  const skills = markDuplicates(found);
  return {
    schema_version: "v1alpha1",
    factory: factory.part,
    agents: agents.map(({ part }) => ({ ...part, skills: skillsOf(part.name, skills) })).toSorted(byName),
    runners: runners.toSorted(byName),
    skills,
  };
}

const byName = (a: { name: string }, b: { name: string }): number => compareText(a.name, b.name);
