import { expect, test } from "@jest/globals";
import { systemClock } from "@millwright/clock";
import { memoryLog } from "@millwright/testing";
import { Room } from "./room.ts";

test("Worker disk full: it takes nothing until there is some again", async () => {
  const answers = [true, false, false, true];
  const room = new Room(
    { cacheDir: "/nowhere/at/all", hasRoom: () => Promise.resolve(answers.shift()!) },
    0,
    systemClock,
    memoryLog(),
  );
  expect([room.isThere, await room.hasRoom(), room.isThere]).toEqual([true, true, true]);
  expect([await room.hasRoom(), room.isThere]).toEqual([false, false]); // asked again after the copies of repositories had gone
  expect([await room.hasRoom(), room.isThere]).toEqual([true, true]);
});
