import { randomUUID } from "node:crypto";
import { readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { usageOfDirectories } from "../sandbox/disk-usage.ts";

/** Longer than any use of one takes: git's own time limit and the clone after it. */
const IN_USE_MS = 30 * 60_000;

/**
 * Removes the copies of repositories that were not used for the longest time, until the rest takes no more than `bytesMax`. One that may be in use
 * stays, whatever it takes. Answers how many were removed. Several workers may do so at once.
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

/** Moved before it is removed: nobody meets half of it. */
async function remove(path: string): Promise<number> {
  const discarded = `${path}-${randomUUID()}`;
  await rename(path, discarded).catch(() => undefined); // another worker was faster
  await rm(discarded, { recursive: true, force: true });
  return 1;
}
