import { z } from "zod";
import { absolute, onPath } from "./paths.ts";
import { defineTool } from "./tool.ts";

const DEPTH = 4;

export const list = defineTool({
  name: "list",
  action: "file_glob",
  category: "search",
  description: `Lists the files and directories of a directory of the workspace, ${DEPTH} levels deep; with \`pattern\` only those whose path or name matches the glob.`,
  isReadOnly: true,
  isParallel: true,
  changes: "nothing",
  input: z.object({ path: z.string().min(1).optional(), pattern: z.string().optional() }),
  shown: (input) => input as Record<string, string>,
  async run({ path = ".", pattern = "" }, { workspace }) {
    const { sandbox } = workspace;
    const { entries, truncated } = await onPath(path, () =>
      sandbox.list(sandbox.workspace, absolute(workspace, path), pattern, DEPTH),
    );
    return { output: { files: entries.map((entry) => ({ path: entry.path, type: entry.type })), truncated } };
  },
});
