import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { trimCaches } from "../src/git/repository-caches.ts";
import { withDirectory } from "./support/sandboxes.ts";

const MIB = 1024 ** 2;
const now = Date.now();

/** Creates a copy of 1 MiB that was last used the given number of hours ago. */
async function aCache(dir: string, name: string, hoursAgo: number): Promise<void> {
  await mkdir(join(dir, name));
  await writeFile(join(dir, name, "pack"), Buffer.alloc(MIB, 1));
  await utimes(join(dir, name), new Date(now), new Date(now - hoursAgo * 3_600_000));
}

test("the most recently used copies are retained within the disk limit; leftovers of killed workers are removed", () =>
  withDirectory(async (dir) => {
    for (const [index, hours] of [5, 1, 3, 2].entries()) await aCache(dir, `${index}.git`, hours);
    await aCache(dir, "9.git-aside", 1);
    await writeFile(join(dir, "gitconfig"), "");
    expect(await trimCaches(dir, 2.5 * MIB, now)).toBe(3);
    expect((await readdir(dir)).sort()).toEqual(["1.git", "3.git", "gitconfig"]);
    expect(await trimCaches(dir, 2.5 * MIB, now)).toBe(0);
  }));

test("a copy that may be in use is retained, however full the disk is", () =>
  withDirectory(async (dir) => {
    await aCache(dir, "used.git", 0.1);
    await aCache(dir, "old.git", 1);
    expect(await trimCaches(dir, 0, now)).toBe(1);
    expect(await readdir(dir)).toEqual(["used.git"]);
  }));

test("removes nothing if the directory does not exist", async () =>
  expect(await trimCaches("/nowhere/at/all", 0)).toBe(0));
