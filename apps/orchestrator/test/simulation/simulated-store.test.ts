import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { assert, asyncProperty } from "fast-check";
import { testPlatform, type TestPlatform } from "../support/platform.ts";
import { aCast } from "./cast.ts";
import { Drive } from "./drive.ts";
import { memoryWorld } from "./memory-world.ts";
import { aScript, SCALE, SEED, SIMULATION_TIMEOUT_MS } from "./script.ts";
import { sqlWorld } from "./sql-world.ts";
import { viewOfWorld } from "./view.ts";

const SCRIPTS = 30 * SCALE;
const DECISIONS = 250;

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform();
});
afterAll(() => platform.close());

test(
  "after the same operations the SQL store and the simulation have the same state, including events, offers and capacity",
  async () => {
    await assert(
      asyncProperty(aScript(DECISIONS), async (script) => {
        const cast = aCast();
        const views = [];
        for (const world of [memoryWorld(), await sqlWorld(platform.database, platform.timings, cast)]) {
          const drive = new Drive(world, cast, script);
          await drive.play();
          const inMidst = viewOfWorld(await world.raw());
          await drive.end();
          views.push({ story: drive.story, inMidst, atTheEnd: viewOfWorld(await world.raw()) });
        }
        expect(views[1]!.story).toEqual(views[0]!.story);
        expect(views[1]).toEqual(views[0]);
      }),
      { seed: SEED, numRuns: SCRIPTS, endOnFailure: true },
    );
  },
  SIMULATION_TIMEOUT_MS,
);
