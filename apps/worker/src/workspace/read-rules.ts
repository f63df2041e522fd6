import type { Rule } from "../model/model-provider.ts";
import { SandboxRefusal, FileTooLarge } from "../sandbox/sandbox-errors.ts";
import type { Workspace } from "../tools/tool.ts";

const RULES_FILE = "AGENTS.md";
const BYTES_MAX = 32 * 1024;

/** Returns the instructions in the repositories' AGENTS.md files. Files that exceed the limit are ignored. */
export async function readRules({ sandbox, copies }: Workspace): Promise<Rule[]> {
  const rules: Rule[] = [];
  for (const { directory } of copies) {
    const path = `${directory}/${RULES_FILE}`;
    try {
      rules.push({
        path,
        text: (await sandbox.readFile(sandbox.workspace, `${sandbox.workspace}/${path}`, BYTES_MAX)).toString("utf8"),
      });
    } catch (error) {
      if (!(error instanceof SandboxRefusal || error instanceof FileTooLarge)) throw error;
    }
  }
  return rules;
}
