import { expect, test } from "@jest/globals";
import { assert, asyncProperty } from "fast-check";
import { violationsOf } from "./violations.ts";
import { aCast } from "./cast.ts";
import { Drive } from "./drive.ts";
import { memoryWorld } from "./memory-world.ts";
import { aScript, SCALE, SEED, SIMULATION_TIMEOUT_MS } from "./script.ts";
import { situationsOf } from "./situations.ts";

const RACES = 20_000 * SCALE;
const DECISIONS = 400;
const RACES_PER_SCRIPT = 8.5;

// Runs, cancels, child runs and workers that die, freeze or repeat requests happen concurrently. Every transaction of
// the use cases waits for its turn, and the script determines the order of turns.
test(
  `Follow-up races completion: in ${RACES} races of follow-ups with other operations on their runs, each is delivered or reported undeliverable once and in order, and no run remains active`,
  async () => {
    const cast = aCast();
    const tried = new Map<string, number>();
    const count = (what: string, n = 1) => tried.set(what, (tried.get(what) ?? 0) + n);
    await assert(
      asyncProperty(aScript(DECISIONS), async (script) => {
        const world = memoryWorld();
        const drive = new Drive(world, cast, script);
        await drive.play(() => {
          for (const { inUse, max } of world.rows.capacity.all())
            if (inUse > max) throw new Error(`${inUse} run at once where ${max} may`);
        });
        await drive.end();
        const raw = await world.raw();
        const violations = violationsOf(raw);
        if (violations.length > 0) throw new Error(violations.join("\n"));
        count("races", drive.raced.size);
        count("completing", drive.racedCompletion.size);
        for (const situation of situationsOf(raw)) count(situation);
      }),
      { seed: SEED, numRuns: Math.ceil(RACES / RACES_PER_SCRIPT), endOnFailure: SCALE > 1 },
    );
    expect(tried.get("races")).toBeGreaterThanOrEqual(RACES);
    const rare = [
      "queued",
      "starting",
      "running",
      "completing",
      "waiting",
      "cancelled",
      "failed setup",
      "debug window",
      "ended",
      "resumed",
    ].filter((situation) => (tried.get(situation) ?? 0) < RACES / 2_000);
    expect(rare).toEqual([]);
  },
  SIMULATION_TIMEOUT_MS,
);
