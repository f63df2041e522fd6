import { omitUndefined } from "@millwright/json";
import type { AgentPart, AgentType } from "./definition.ts";
import { START, type Place, type Problems } from "./diagnostics.ts";
import { EXECUTION_KEYS, readExecutionBlock, type ReadBlock } from "./execution-block.ts";
import { Fields } from "./fields.ts";
import { parseMarkdown } from "./markdown.ts";
import { CREDENTIAL_STRATEGIES } from "./rules.ts";

export const AGENT_TYPES = ["CUSTOM", "FOREMAN", "MAIN", "TRIAGE", "SPEC", "IMPLEMENT", "REVIEW", "VERIFY"] as const;

export type ReadAgent = { path: string; part: AgentPart; read: ReadBlock; typeAt: Place };

/** Reads agents/<name>/agent.md; undefined if its frontmatter is not valid YAML. */
export function readAgentFile(name: string, path: string, text: string, problems: Problems): ReadAgent | undefined {
  const parsed = parseMarkdown(path, text, problems);
  if (!parsed) return undefined;
  const fields = new Fields(parsed.document, parsed.map, [
    "description",
    "agentType",
    "credentialStrategy",
    ...EXECUTION_KEYS,
  ]);
  fields.inherit("description", "agentType", "credentialStrategy");
  const description = fields.text("description");
  const type = fields.oneOf("agentType", AGENT_TYPES);
  const strategy = fields.oneOf("credentialStrategy", CREDENTIAL_STRATEGIES);
  const read = readExecutionBlock(fields, { needsModel: false });
  if (parsed.body === "")
    problems.error(
      path,
      START,
      "FF_MISSING_FIELD",
      "The text after the frontmatter is the agent's prompt and is required.",
    );
  const agentType: AgentType = type === "MAIN" ? "FOREMAN" : (type ?? "CUSTOM");
  return {
    path,
    part: {
      name,
      ...omitUndefined({ description }),
      agent_type: agentType,
      ...omitUndefined({ credential_strategy: strategy }),
      prompt: parsed.body,
      ...read.block,
      skills: [],
    },
    read,
    typeAt: fields.valueAt("agentType"),
  };
}
