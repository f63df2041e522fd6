import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { UsageError } from "./command.ts";

/** The files of a definition tree, paths with `/` and relative to its directory. Links and `.git` are left out. */
export async function readDefinitionDirectory(directory: string): Promise<{ path: string; content: string }[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(
    (error: NodeJS.ErrnoException) => {
      throw new UsageError(
        `Cannot read ${directory}: ${error.code === "ENOENT" ? "there is no such directory" : error.code === "ENOTDIR" ? "it is not a directory" : error.message}.`,
      );
    },
  );
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(directory, "/").length).split("\\").join("/"))
    .filter((path) => !path.split("/").includes(".git"))
    .sort();
  return Promise.all(files.map(async (path) => ({ path, content: await readFile(join(directory, path), "utf8") })));
}
