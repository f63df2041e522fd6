import { z } from "zod";
import { changedLines } from "./changed-lines.ts";
import { absolute, onPath, readText, shownPath } from "./paths.ts";
import { defineTool } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

/** Replaces a text only if it occurs exactly once; the tool never guesses which of several occurrences was meant. */
export const editFile = defineTool({
  name: "edit_file",
  action: "edit_files",
  category: "files",
  description:
    "Replaces the text `old` by `new` in a file of the workspace. `old` must occur exactly once, white space included.",
  isReadOnly: false,
  changes: "files",
  input: z.object({ path: z.string().min(1), old: z.string().min(1), new: z.string() }),
  shown: ({ path }) => ({ files: [{ path }] }),
  async run({ path, old, new: replacement }, { workspace }) {
    const before = await readText(workspace, path);
    const at = before.indexOf(old);
    if (at < 0) throw new ToolFailure(`The text to replace does not occur in ${path}.`);
    if (before.includes(old, at + 1))
      throw new ToolFailure(
        `The text to replace occurs more than once in ${path}; include more of the surrounding text.`,
      );
    const after = before.slice(0, at) + replacement + before.slice(at + old.length);
    const { sandbox } = workspace;
    await onPath(path, () => sandbox.writeFile(sandbox.workspace, absolute(workspace, path), Buffer.from(after)));
    return { output: { files: [{ path: shownPath(workspace, path), ...changedLines(before, after) }] } };
  },
});
