import { withExactNumbers } from "@millwright/payload-filter";
import { readAutomationFile } from "./automation-file.ts";
import type { AutomationPart } from "./definition.ts";
import { Problems, type Diagnostic } from "./diagnostics.ts";

/** An automation as JSON: the keys of its file's frontmatter in the spelling of the API. */
export type AutomationText = { readonly prompt: string; readonly [key: string]: unknown };

/** The API writes the keys of files with underscores. */
const SPELLINGS: Readonly<Record<string, string>> = {
  environment_id: "environmentId",
  mcp_servers: "mcpServers",
  worker_host: "workerHost",
  reasoning_level: "reasoningLevel",
  secret_name: "secretName",
  warp_id: "warpId",
};

/**
 * Parses an automation that has no file, by the rules of files: JSON is YAML, so the same
 * parser is used. Names of agents and runners are not resolved.
 */
export function parseAutomation(name: string, { prompt, ...keys }: AutomationText): ParsedAutomation {
  const problems = new Problems();
  const read = readAutomationFile(
    name,
    "automation",
    `---\n${JSON.stringify(withExactNumbers(inFileSpelling(keys)))}\n---\n${prompt}`,
    problems,
  );
  const faults = problems.sorted().filter(({ severity }) => severity === "error");
  if (!read) return { faults };
  return faults.length === 0 ? { automation: read.part, faults } : { draft: read.part, faults };
}

/** `draft`: the readable part of a faulty automation, for further checks. */
export type ParsedAutomation = {
  readonly automation?: AutomationPart;
  readonly draft?: AutomationPart;
  readonly faults: readonly Diagnostic[];
};

/** Triggers have the same spelling in both; the names of servers are not keys. */
function inFileSpelling(keys: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(keys)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [
        Object.hasOwn(SPELLINGS, key) ? SPELLINGS[key] : key,
        key === "harness" || key === "auth"
          ? inner(value)
          : key === "mcp_servers" && isObject(value)
            ? Object.fromEntries(Object.entries(value).map(([name, server]) => [name, inner(server)]))
            : value,
      ]),
  );
}

const inner = (value: unknown): unknown => (isObject(value) ? inFileSpelling(value) : value);
const isObject = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === "object" && !Array.isArray(value);
