import { expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { memoryLog } from "@millwright/testing";
import { DiskSpace } from "./disk-space.ts";

test("Worker disk full: the worker claims nothing until there is free space again", async () => {
  const answers = [true, false, false, true];
  const diskSpace = new DiskSpace(
    { cacheDir: "/nowhere/at/all", hasFreeDisk: () => Promise.resolve(answers.shift()!) },
    0,
    systemClock,
    memoryLog(),
  );
  expect([diskSpace.isAvailable, await diskSpace.hasFreeDisk(), diskSpace.isAvailable]).toEqual([true, true, true]);
  // checked again after the repository copies were removed
  expect([await diskSpace.hasFreeDisk(), diskSpace.isAvailable]).toEqual([false, false]);
  expect([await diskSpace.hasFreeDisk(), diskSpace.isAvailable]).toEqual([true, true]);
});
