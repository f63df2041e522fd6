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

test("the copies used last are kept, as many as there is room for; what a killed worker put aside goes", () =>
  withDirectory(async (dir) => {
    for (const [index, hours] of [5, 1, 3, 2].entries()) await aCache(dir, `${index}.git`, hours);
    await aCache(dir, "9.git-aside", 1);
    await writeFile(join(dir, "gitconfig"), "");
    expect(await trimCaches(dir, 2.5 * MIB, now)).toBe(3);
    expect((await readdir(dir)).sort()).toEqual(["1.git", "3.git", "gitconfig"]);
    expect(await trimCaches(dir, 2.5 * MIB, now)).toBe(0);
  }));

test("one that may be in use stays, however full it is", () =>
  withDirectory(async (dir) => {
    await aCache(dir, "used.git", 0.1);
    await aCache(dir, "old.git", 1);
    expect(await trimCaches(dir, 0, now)).toBe(1);
    expect(await readdir(dir)).toEqual(["used.git"]);
  }));

test("no directory, nothing to do", async () => expect(await trimCaches("/nowhere/at/all", 0)).toBe(0));
