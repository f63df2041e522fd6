import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** The files of a definition tree, paths with `/` and relative to its directory. Links and `.git` are left out. */
export async function readDefinitionDirectory(directory: string): Promise<{ path: string; content: string }[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(directory, "/").length).split("\\").join("/"))
    .filter((path) => !path.split("/").includes(".git"))
    .sort();
  return Promise.all(files.map(async (path) => ({ path, content: await readFile(join(directory, path), "utf8") })));
}
