import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { copyFileDurably } from "@millwright/database";

export type TreeSize = { readonly files: number; readonly bytes: number };

/**
 * Copies a directory with owner-only permissions: files that the target lacks or has in an older state. Files that are
 * deleted during the copy are skipped. A missing source is treated as empty.
 */
export async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const entry of (await readdir(from, { withFileTypes: true }).catch(whenAbsent)) ?? []) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isFile() && (await isNewer(source, target))) await copyFileDurably(source, target).catch(whenAbsent);
  }
}

async function isNewer(source: string, copy: string): Promise<boolean> {
  const [here, there] = [await stat(source).catch(whenAbsent), await stat(copy).catch(whenAbsent)];
  return here !== undefined && (here.size !== there?.size || here.mtimeMs > there.mtimeMs);
}

/** Returns the number and size of the files below a directory; zero if it does not exist. */
export async function sizeOfTree(directory: string): Promise<TreeSize> {
  let [files, bytes] = [0, 0];
  for (const entry of (await readdir(directory, { withFileTypes: true, recursive: true }).catch(whenAbsent)) ?? []) {
    if (!entry.isFile()) continue;
    files += 1;
    bytes += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return { files, bytes };
}

function whenAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
