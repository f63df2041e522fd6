import { randomUUID } from "node:crypto";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { usageOfDirectories } from "../sandbox/disk-usage.ts";

/** Longer than any use of a copy can take: git's time limit plus the clone from the bundle. */
const IN_USE_MS = 30 * 60_000;

/**
 * Removes the least recently used repository copies until the others take at most `bytesMax`. Never removes a copy that
 * may be in use. Returns the number of removed copies. Several workers may call it concurrently.
 */
export async function trimCaches(directory: string, bytesMax: number, now = Date.now()): Promise<number> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => /\.git(?:-[\w-]+)?$/.test(name));
  const found = await Promise.all(
    names.map(async (name) => ({
      path: join(directory, name),
      usedMs: (await stat(join(directory, name)).catch(() => undefined))?.mtimeMs ?? 0,
    })),
  );
  let [retained, removed] = [0, 0];
  for (const { path, usedMs } of found.sort((a, b) => b.usedMs - a.usedMs)) {
    const bytes = (await usageOfDirectories([path])).bytes;
    if (now - usedMs < IN_USE_MS || (retained + bytes <= bytesMax && path.endsWith(".git"))) retained += bytes;
    else removed += await remove(path);
  }
  return removed;
}

/** Renames the copy before removing it, so that no worker reads a partial copy. */
async function remove(path: string): Promise<number> {
  const discarded = `${path}-${randomUUID()}`;
  await rename(path, discarded).catch(() => undefined); // another worker has already renamed it
  await rm(discarded, { recursive: true, force: true });
  return 1;
}
