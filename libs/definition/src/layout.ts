/** The kind of file at a path of a definition tree. */
export type PathKind =
  | { kind: "factory" }
  | { kind: "agent"; name: string }
  | { kind: "runner"; name: string }
  | { kind: "skill"; name: string; agent?: string }
  | { kind: "automation"; name: string }
  | { kind: "webhook"; name: string }
  | { kind: "scorer"; name: string }
  | { kind: "suite"; name: string }
  | { kind: "suite task"; name: string; suite: string }
  /** Inside a resource directory, at a path that the layout does not define. */
  | { kind: "misplaced" }
  /** Not part of a definition: ignored. */
  | { kind: "other" };

/** The name of a resource as a path segment; case-sensitive. */
export const SEGMENT = /^[a-z0-9][a-z0-9._-]{0,62}$/;

const DIRECTORIES: ReadonlySet<string> = new Set([
  "agents",
  "automations",
  "runners",
  "scorers",
  "benchmarks",
  "skills",
  "webhooks",
]);

/** Classifies a path by its form alone; the caller validates the names. */
export function classify(path: string): PathKind {
  if (path === "factory.yaml") return { kind: "factory" };
  const segments = path.split("/");
  const [directory = "", name = "", third, fourth, fifth, ...rest] = segments;
  if (!DIRECTORIES.has(directory) || segments.length === 1) return { kind: "other" };
  if (segments.some((segment) => segment.startsWith("."))) return { kind: "other" }; // .gitkeep and the like
  switch (directory) {
    case "agents":
      if (third === "agent.md" && fourth === undefined) return { kind: "agent", name };
      if (third !== "skills") return { kind: "misplaced" };
      return skillFile(fourth, fifth === undefined ? [] : [fifth, ...rest], name);
    case "skills":
      return skillFile(name, segments.slice(2));
    case "runners":
      return yamlFile(name, third) ? { kind: "runner", name: stem(name) } : { kind: "misplaced" };
    case "webhooks":
      return yamlFile(name, third) ? { kind: "webhook", name: stem(name) } : { kind: "misplaced" };
    case "automations":
      return third === "automation.md" && fourth === undefined ? { kind: "automation", name } : { kind: "misplaced" };
    case "scorers":
      return third === "scorer.md" && fourth === undefined ? { kind: "scorer", name } : { kind: "misplaced" };
    default:
      return benchmarkFile(name, third, fourth, fifth);
  }
}

/** Returns whether a file of a repository belongs to its definition; other files need not be read. */
export const isDefinitionPath = (path: string): boolean => classify(path).kind !== "other";

/** Files beside SKILL.md (scripts, references) belong to the skill and never block a definition. */
const skillFile = (name: string | undefined, inside: readonly string[], agent?: string): PathKind =>
  name !== undefined && inside.length === 1 && inside[0] === "SKILL.md"
    ? { kind: "skill", name, ...(agent === undefined ? {} : { agent }) }
    : { kind: "other" };

function benchmarkFile(suite: string, third?: string, fourth?: string, fifth?: string): PathKind {
  if (third === "suite.yaml" && fourth === undefined) return { kind: "suite", name: suite };
  if (third === "tasks" && fourth !== undefined && yamlFile(fourth, fifth))
    return { kind: "suite task", name: stem(fourth), suite };
  return { kind: "misplaced" };
}

const yamlFile = (name: string, next: string | undefined): boolean => next === undefined && name.endsWith(".yaml");
const stem = (name: string): string => name.slice(0, -".yaml".length);
