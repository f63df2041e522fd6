import { createHash, randomUUID } from "node:crypto";
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { worker } from "@millwright/contracts";
import { GitFailed, type HostGit } from "./host-git.ts";
import { nameOf } from "./repository.ts";
import { usageOfDirectories } from "../sandbox/disk-usage.ts";

const FETCH_ATTEMPTS = 5;
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
    else removed += await removeCopy(path);
  }
  return removed;
}

/** Renames the copy before removing it, so that no execution reads a partial copy. */
async function removeCopy(path: string): Promise<number> {
  const discarded = `${path}-${randomUUID()}`;
  await rename(path, discarded).catch(() => undefined); // another execution or worker has already renamed it
  await rm(discarded, { recursive: true, force: true });
  return 1;
}

/**
 * Fetches a repository into the shared cache and returns the path of the copy. Executions use the cache concurrently
 * and git locks each ref, so a conflicting fetch is retried. A lock that remains after all retries belongs to a killed
 * git process; the copy is then recreated.
 */
export async function fetchIntoCache(
  repository: worker.Repository,
  { git, cacheDir }: { readonly git: HostGit; readonly cacheDir: string },
  settings: Record<string, string>,
): Promise<string> {
  const cache = join(cacheDir, `${createHash("sha256").update(repository.cloneUrl).digest("hex").slice(0, 32)}.git`);
  await mkdir(cacheDir, { recursive: true, mode: 0o700 });
  const what = `Cannot fetch ${nameOf(repository)}`;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await git.run(what, ["init", "--quiet", "--bare", "--template=", cache], settings);
      await utimes(cache, new Date(), new Date()); // marks the copy as recently used, so that it is not removed
      await git.run(
        what,
        [
          "-C",
          cache,
          "fetch",
          "--quiet",
          "--prune",
          "--force",
          "--no-tags",
          "--",
          repository.cloneUrl,
          "+refs/heads/*:refs/heads/*",
          "+refs/tags/*:refs/tags/*",
        ],
        settings,
      );
      return cache;
    } catch (error) {
      if (
        attempt > FETCH_ATTEMPTS ||
        !(error instanceof GitFailed) ||
        !/lock|unable to update|cannot update|cannot mkdir/i.test(error.message)
      )
        throw error;
      if (attempt === FETCH_ATTEMPTS) await removeCopy(cache);
      else await pause(50 * 2 ** attempt * (0.5 + Math.random()));
    }
  }
}
