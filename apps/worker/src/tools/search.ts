import { z } from "zod";
import { SandboxRefusal } from "../sandbox/sandbox-errors.ts";
import type { ExecOptions } from "../sandbox/commands.ts";
import { absolute, onPath, shownPath } from "./paths.ts";
import { defineTool, type Workspace } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

const TIMEOUT_MS = 60_000;
const LINES_MAX = 200;
const RIPGREP = [
  "rg",
  "--line-number",
  "--no-heading",
  "--with-filename",
  "--color",
  "never",
  "--max-columns",
  "300",
  "--max-count",
  "50",
  "--sort",
  "path",
];

export const search = defineTool({
  name: "search",
  action: "grep",
  category: "search",
  description:
    "Searches the text files of the workspace, or of `path` in it, for a regular expression; returns `file:line:text`.",
  isReadOnly: true,
  isParallel: true,
  changes: "nothing",
  input: z.object({ pattern: z.string().min(1), path: z.string().min(1).optional() }),
  shown: (input) => input as { pattern: string },
  async run({ pattern, path = "." }, { workspace, signal }) {
    const { sandbox } = workspace;
    const found = await onPath(path, () => sandbox.stat(sandbox.workspace, absolute(workspace, path)));
    if (found.type === "absent") throw new ToolFailure(`There is no ${path}.`);
    const run = await grep(workspace, pattern, shownPath(workspace, path), {
      cwd: sandbox.workspace,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    if (run.timedOut) throw new ToolFailure("The search took too long.");
    if (run.exitCode !== 0 && run.exitCode !== 1)
      throw new ToolFailure(run.output.trim().split("\n").slice(0, 4).join("\n") || "The search failed.");
    const lines = run.output
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.replace(/^\.\//, ""));
    return {
      output: {
        matches: Math.min(lines.length, LINES_MAX),
        output: lines.slice(0, LINES_MAX).join("\n"),
        truncated: run.truncated || lines.length > LINES_MAX,
      },
    };
  },
});

/** Searches with ripgrep if the sandbox has it, otherwise with the platform's own text search. */
async function grep({ sandbox }: Workspace, pattern: string, path: string, options: ExecOptions) {
  try {
    return await sandbox.exec([...RIPGREP, "-e", pattern, "--", path], options);
  } catch (error) {
    if (!(error instanceof SandboxRefusal && error.code === "cannot_start")) throw error;
    return sandbox.exec([...sandbox.ownProgram("grep"), pattern, path], options);
  }
}
