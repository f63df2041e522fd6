import { z } from "zod";
import { changedLines } from "./changed-lines.ts";
import { absolute, onPath, readText, shownPath } from "./paths.ts";
import { defineTool } from "./tool.ts";

export const writeFile = defineTool({
  name: "write_file",
  action: "edit_files",
  category: "files",
  description:
    "Writes a whole file of the workspace; missing directories are created; an existing file is replaced and retains its mode.",
  isReadOnly: false,
  changes: "files",
  input: z.object({ path: z.string().min(1), content: z.string() }),
  shown: ({ path }) => ({ files: [{ path }] }),
  async run({ path, content }, { workspace }) {
    // new, binary or very long: all lines count as added
    const before = await readText(workspace, path).catch(() => "");
    const { sandbox } = workspace;
    const { created } = await onPath(path, () =>
      sandbox.writeFile(sandbox.workspace, absolute(workspace, path), Buffer.from(content)),
    );
    return { output: { files: [{ path: shownPath(workspace, path), ...changedLines(before, content), created }] } };
  },
});
