import { z } from "zod";
import { readText, shownPath } from "./paths.ts";
import { defineTool } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

const CHARACTERS_MAX = 48_000;
const line = z.number().int().positive();

export const readFile = defineTool({
  name: "read_file",
  action: "read_files",
  category: "files",
  description:
    "Reads a text file of the workspace, or the lines from start_line to end_line (both counted from 1 and included).",
  isReadOnly: true,
  isParallel: true,
  changes: "nothing",
  input: z.object({ path: z.string().min(1), start_line: line.optional(), end_line: line.optional() }),
  shown: ({ path }) => ({ files: [{ path }] }),
  async run({ path, start_line: from = 1, end_line: to }, { workspace }) {
    const lines = (await readText(workspace, path)).split("\n");
    if (lines.at(-1) === "") lines.pop();
    if (from > Math.max(1, lines.length)) throw new ToolFailure(`${path} has ${lines.length} lines.`);
    const content = lines.slice(from - 1, to).join("\n");
    const end = Math.min(to ?? lines.length, lines.length);
    const file = {
      path: shownPath(workspace, path),
      start_line: from,
      end_line: end,
      total_lines: lines.length,
      content: content.slice(0, CHARACTERS_MAX),
    };
    return { output: { files: [content.length > CHARACTERS_MAX ? { ...file, truncated: true } : file] } };
  },
});
